#include "validation/cells/run_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "validation/cells/cell_values.h"
#include "validation/cells/column_names.h"

namespace plait {
namespace {

// Words in lower case with _ between them: "Tokens / sec / GPU" is tokens_per_s_per_gpu, "#-GPUs"
// num_gpus.
std::string plain_column(std::string_view name) {
  std::string out;
  const auto word = [&](std::string_view text) {
    if (!out.empty() && out.back() != '_') out += '_';
    out += text;
    out += '_';
  };
  for (const char c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (c == '/')
      word("per");
    else if (c == '#')
      word("num");
    else if (!out.empty() && out.back() != '_')
      out += '_';
  while (out.ends_with('_')) out.pop_back();
  for (const auto& [said, meant] :
       {std::pair<std::string_view, std::string_view>{"_per_second", "_per_s"},
        {"_per_sec", "_per_s"}})
    for (std::size_t at = out.find(said); at != out.npos; at = out.find(said, at + meant.size()))
      if (at + said.size() == out.size() || out[at + said.size()] == '_')
        out.replace(at, said.size(), meant);
  return out;
}

std::string squashed(std::string_view text) {
  std::string out(text);
  std::erase(out, '_');
  return out;
}

// `sure`: by names that can mean nothing else.
const ColumnNames* column_called(std::string_view plain, bool sure) {
  const std::string wanted = squashed(plain);
  const auto same = [&](std::string_view name) {
    if (name.starts_with('?')) {
      if (sure) return false;
      name.remove_prefix(1);
    }
    return squashed(name) == wanted || squashed(plain_column(name)) == wanted;
  };
  for (const ColumnNames& column : column_names())
    if (same(column.name) || std::ranges::any_of(column.others, same)) return &column;
  return nullptr;
}

struct Known {
  std::string_view name;  // in run_row.h
  std::string unit;       // of its cells; "" = that of the name
};

std::optional<Known> column_of(const std::string& plain, bool sure) {
  if (const ColumnNames* column = column_called(plain, sure)) return Known{column->name, ""};
  // "peak_memory_mib", "number of parameters (billion)".
  const std::size_t at = plain.rfind('_');
  if (at == plain.npos) return std::nullopt;
  const std::string unit = plain.substr(at + 1);
  const ColumnNames* column = column_called(std::string_view(plain).substr(0, at), sure);
  if (column == nullptr || !is_unit(unit, column->kind)) return std::nullopt;
  return Known{column->name == kUnstatedTime ? "iter_time_s" : column->name, unit};
}

bool is_rate(std::string_view name) {
  constexpr std::array kRates{"tokens_per_s_per_gpu",  "tokens_per_s_total", "samples_per_s",
                              "samples_per_s_per_gpu", "throughput",         "steps_per_s"};
  return std::ranges::find(kRates, name) != kRates.end();
}

// Without words before the name that change nothing: "train_samples_per_second", "Average step
// time (s)"; "Global throughput (samples/s)" and "Throughput: tokens/s" of rates alone.
std::optional<Known> qualified_column(std::string plain) {
  constexpr std::array kWords{"train",  "training", "avg",      "average",  "mean",
                              "median", "measured", "observed", "achieved", "actual"};
  constexpr std::array kWordsOfRates{"global",     "total", "overall",     "aggregate",
                                     "throughput", "speed", "through_put", "rate"};
  for (bool rate_alone = false;;) {
    const auto begins = [&](std::string_view word) {
      return plain.starts_with(word) && plain.size() > word.size() && plain[word.size()] == '_';
    };
    const auto any = std::ranges::find_if(kWords, begins);
    const auto of_rates = std::ranges::find_if(kWordsOfRates, begins);
    if (any == kWords.end() && of_rates == kWordsOfRates.end()) return std::nullopt;
    rate_alone = rate_alone || any == kWords.end();
    plain.erase(0, std::string_view(any != kWords.end() ? *any : *of_rates).size() + 1);
    const auto known = column_of(plain, false);
    if (known && (!rate_alone || is_rate(known->name))) return known;
  }
}

// What a column may mean whose name alone does not tell.
std::optional<Known> likely_column(const std::string& own) {
  const std::string plain = plain_column(own);
  // "step" may number the steps: its name or its unit must say that it is a time.
  const auto named = column_of(plain, false);
  if (named && (named->name != kUnstatedTime || !named->unit.empty())) return named;
  if (const auto known = qualified_column(plain)) return known;
  const std::size_t point = own.rfind('.');  // "config.model.n_layer"
  if (point == own.npos || point + 1 == own.size()) return std::nullopt;
  return column_of(plain_column(own.substr(point + 1)), false);
}

// "9800" in a column of milliseconds is "9800 ms".
void put_unit(CsvTable& table, std::size_t column, const std::string& unit) {
  for (CsvTable::Row& row : table.rows) {
    std::string& cell = row.cells[column];
    while (!cell.empty() && std::isspace(static_cast<unsigned char>(cell.back())) != 0)
      cell.pop_back();
    if (!cell.empty() && std::isdigit(static_cast<unsigned char>(cell.back())) != 0)
      cell += " " + unit;
  }
}

}  // namespace

std::string column_meant(const std::string& words) {
  const std::string plain = plain_column(words);
  const auto known = column_of(plain, true);
  return known && known->unit.empty() ? std::string(known->name) : std::string();
}

CsvTable with_known_columns(CsvTable table) {
  std::map<std::string, std::string, std::less<>> said_by;  // columns of the file, by their names
  for (const std::string& column : table.header) said_by.emplace(column, column);
  const auto rename = [&](std::size_t i, const Known& known) {
    if (!known.unit.empty()) put_unit(table, i, known.unit);
    table.header[i] = known.name;
  };
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    const std::string column = table.header[i];
    if (is_other_column(column)) continue;
    const auto known = column_of(plain_column(column), true);
    if (!known) {
      open.push_back(i);
      continue;
    }
    if (known->name == column) continue;
    const std::string name(known->name);
    const auto [other, is_new] = said_by.emplace(name, column);
    if (!is_new && other->second == name) continue;
    if (!is_new)
      throw InputError(table.name, fmt::format("columns '{}' and '{}' both say {}", other->second,
                                               column, name));
    rename(i, *known);
  }
  for (const std::size_t i : open)
    if (const auto known = likely_column(table.header[i]))
      if (said_by.emplace(known->name, table.header[i]).second) rename(i, *known);
  return table;
}

std::string program_of_columns(const CsvTable& table) {
  struct Argument {
    std::string_view name;
    const char* program;
  };
  constexpr std::array kArguments{Argument{"per_device_train_batch_size", "Hugging Face"},
                                  Argument{"model_name_or_path", "Hugging Face"},
                                  Argument{"train_micro_batch_size_per_gpu", "DeepSpeed"},
                                  Argument{"max_target_length", "MaxText"}};
  for (const std::string& column : table.header)
    for (const Argument& argument : kArguments)
      if (plain_column(column.substr(column.rfind('.') + 1)) == argument.name)
        return argument.program;
  return {};
}

std::vector<std::string> unread_columns(const CsvTable& table) {
  std::vector<std::string> out;
  const CsvTable known = with_known_columns(table);
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    const std::string& name = known.header[i];
    const bool read = std::ranges::any_of(
        column_names(), [&](const ColumnNames& column) { return column.name == name; });
    if (!read && !is_other_column(name) && !name.empty()) out.push_back(table.header[i]);
  }
  return out;
}

}  // namespace plait
