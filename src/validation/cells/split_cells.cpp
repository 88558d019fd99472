#include "validation/cells/split_cells.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <string>

#include "validation/cells/cell_values.h"
#include "validation/cells/column_names.h"
#include "validation/cells/run_columns.h"

namespace plait {
namespace {

// A row of a table that may get columns.
class Line {
 public:
  Line(CsvTable& table, CsvTable::Row& row) : table_(table), row_(row) {}

  bool has(std::string_view column) const { return table_.has(column); }
  // What a remark of a page follows says nothing here.
  std::string text(std::string_view column) const {
    constexpr std::size_t kLongest = 200;
    return std::string(table_.cell(row_, column).substr(0, kLongest));
  }

  void put(std::string_view column, const std::string& text) {
    row_.cells.resize(table_.header.size());
    const auto at = std::ranges::find(table_.header, column);
    if (at != table_.header.end()) {
      row_.cells[at - table_.header.begin()] = text;
      return;
    }
    table_.header.emplace_back(column);
    for (CsvTable::Row& row : table_.rows) row.cells.resize(table_.header.size());
    row_.cells.back() = text;
  }

  // Where nothing else says it.
  void add(std::string_view column, const std::string& text) {
    if (this->text(column).empty()) put(column, text);
  }

 private:
  CsvTable& table_;
  CsvTable::Row& row_;
};

bool is(const std::string& text, const std::regex& pattern) {
  return !text.empty() && std::regex_search(text, pattern);
}

std::regex words(const char* pattern) { return std::regex(pattern, std::regex::icase); }

const std::regex& yes() {
  static const std::regex pattern = words(R"(^\s*(?:true|yes|y|on|enabled|1)\s*$)");
  return pattern;
}

const std::regex& no() {
  static const std::regex pattern = words(R"(^\s*(?:false|no|n|off|disabled|none|0)\s*$)");
  return pattern;
}

std::string letters_and_digits(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// "8x A100 80GB" in the column of numbers.
void split_devices(Line& line) {
  const std::string text = line.text("num_gpus");
  static const std::regex named_number = words(R"(^\s*\d{1,6}\s*(?:[x*]|×)?\s*[a-z]|\+)");
  if (read_cell(text, CellKind::count) || !is(text, named_number)) return;
  if (line.text("gpu").empty()) {
    line.put("gpu", text);
    line.put("num_gpus", "");
    return;
  }
  // Beside a device the words must be its name.
  std::smatch match;
  static const std::regex number(R"(^\s*(\d{1,6})\s*(?:[xX*]|×)?\s*([A-Za-z].*)$)");
  if (!std::regex_match(text, match, number)) return;
  const std::string named = letters_and_digits(match[2]);
  const std::string device = letters_and_digits(line.text("gpu"));
  if (device.find(named) != device.npos || named.find(device) != named.npos)
    line.put("num_gpus", match[1]);
}

// "3100 tokens/s/GPU", "10.5 s/it", "47% MFU".
void split_rate(Line& line) {
  const std::string text = line.text(kUnstatedRate);
  std::smatch match;
  static const std::regex parts(R"(^(\D{0,3}[\d.,]+(?:\s*[kKM](?=\s))?)\s*%?\s*([A-Za-z].*)$)");
  if (!std::regex_match(text, match, parts)) return;
  const std::string column = column_meant(match[2]);
  if (column.empty()) return;
  line.add(column, match[1]);
  line.put(kUnstatedRate, "");
}

void split_flags(Line& line) {
  for (const char* format : {"fp8", "bf16", "fp16"})
    if (is(line.text(format), yes())) line.add("precision", format);
  if (is(line.text("bf16"), no()) && is(line.text("fp16"), no())) line.add("precision", "fp32");
  const std::string fsdp = line.text("fsdp");
  if (fsdp.empty() || is(fsdp, no())) return;
  line.add("dp_sharding", is(fsdp, yes()) || read_cell(fsdp, CellKind::count) ? "FSDP" : fsdp);
}

// A "method" may be the way in which the model is cut.
void split_task(Line& line) {
  const std::string task = line.text("task");
  static const std::regex cut = words(R"(\b(?:zero[-_ ]?\d?|ddp|fsdp2?|[tp]p[-_ =]?\d+)\b)");
  static const std::regex trained = words("lora|full|sft");
  if (!is(task, cut) || is(task, trained)) return;
  line.add("strategy", task);
  line.put("task", "");
}

// "OOM" where a result should be.
void split_failure(Line& line) {
  constexpr std::array kResults{
      "tokens_per_s_per_gpu", "tokens_per_s_total", "samples_per_s",  "samples_per_s_per_gpu",
      "steps_per_s",          "throughput",         "tflops_per_gpu", "mfu_pct",
      "peak_mem_gb"};
  static const std::regex failed = words(R"(\boom\b|out of memory)");
  for (const char* column : kResults)
    if (is(line.text(column), failed)) {
      line.add("status", "out of memory");
      line.put(column, "");
    }
}

}  // namespace

CsvTable with_split_cells(CsvTable table) {
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    Line line(table, table.rows[i]);
    split_devices(line);
    split_failure(line);
    split_rate(line);
    split_flags(line);
    split_task(line);
  }
  return table;
}

}  // namespace plait
