#include "runtime/trial/trial_rows.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "io/format/checked_number.h"
#include "io/format/csv.h"
#include "io/format/json_reader.h"
#include "io/plan/plan_json.h"

namespace plait::runtime {
namespace {

const std::vector<std::string>& columns() {
  static const std::vector<std::string> names{"id",
                                              "outcome",
                                              "predicted_s",
                                              "measured_s",
                                              "error",
                                              "steps",
                                              "elapsed_s",
                                              "predicted_memory_GiB",
                                              "measured_memory_GiB",
                                              "model",
                                              "cluster",
                                              "global_batch",
                                              "plan",
                                              "reason"};
  return names;
}

constexpr double kGiB = 0x1p30;
constexpr int kMostTrialSteps = 1'000'000'000;

// "" for nothing.
std::optional<double> number_in(const CsvTable& table, const CsvTable::Row& row,
                                const char* column) {
  const std::string_view text = table.cell(row, column);
  if (text.empty()) return std::nullopt;
  const std::optional<double> value = checked_number(text);
  if (!value)
    throw InputError(table.where(row),
                     fmt::format("{} must be a number, is '{}'", column, text.substr(0, 40)));
  return value;
}

TrialRow row_of(const CsvTable& table, const CsvTable::Row& row) {
  TrialRow out;
  out.id = table.cell(row, "id");
  out.plan = table.cell(row, "plan");
  out.predicted = Seconds(number_in(table, row, "predicted_s").value_or(0));
  out.predicted_memory = Bytes(number_in(table, row, "predicted_memory_GiB").value_or(0) * kGiB);
  const std::string_view outcome = table.cell(row, "outcome");
  const auto end = trial_end_named(outcome);
  if (!end)
    throw InputError(table.where(row), fmt::format("outcome '{}' is not one of measured, "
                                                   "out-of-memory, timed-out, failed",
                                                   outcome));
  out.result.end = *end;
  if (const auto value = number_in(table, row, "measured_s")) out.result.step = Seconds(*value);
  if ((*end == TrialEnd::measured) != out.result.step.has_value())
    throw InputError(table.where(row),
                     "measured_s must be there if the outcome is 'measured', and "
                     "only then");
  if (const auto value = number_in(table, row, "measured_memory_GiB"))
    out.result.memory = Bytes(*value * kGiB);
  const double steps = number_in(table, row, "steps").value_or(0);
  if (!(steps >= 0 && steps <= kMostTrialSteps))
    throw InputError(table.where(row), fmt::format("steps must be from 0 to {}", kMostTrialSteps));
  out.result.steps = static_cast<int>(steps);
  out.result.elapsed = Seconds(number_in(table, row, "elapsed_s").value_or(0));
  out.result.reason = table.cell(row, "reason");
  return out;
}

std::string text_of(std::optional<double> value) { return value ? fmt::format("{}", *value) : ""; }

std::string line_of(const TrialRow& row, const Problem& problem) {
  const TrialResult& result = row.result;
  std::string reason = result.reason;
  for (char& c : reason)
    if (c == '\n' || c == '\r') c = ' ';
  return csv_line(
      {row.id, std::string(name_of(result.end)), fmt::format("{}", row.predicted.value),
       text_of(result.step ? std::optional(result.step->value) : std::nullopt),
       text_of(row.error()), std::to_string(result.steps),
       fmt::format("{:.1f}", result.elapsed.value),
       fmt::format("{}", row.predicted_memory.value / kGiB),
       text_of(result.memory ? std::optional(result.memory->value / kGiB) : std::nullopt),
       problem.model.name, problem.cluster.name, std::to_string(problem.job.global_batch), row.plan,
       reason});
}

void append_durably(const std::string& path, const std::string& text) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const bool written =
      descriptor >= 0 &&
      write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  if (!written) throw InputError(path, std::string("cannot be written: ") + std::strerror(error));
}

}  // namespace

std::optional<double> TrialRow::error() const {
  if (!result.step) return std::nullopt;
  return predicted / *result.step - 1;
}

std::optional<double> TrialRow::memory_error() const {
  if (!result.memory || !result.step) return std::nullopt;
  return predicted_memory / *result.memory - 1;
}

std::string trial_id(const Problem& problem, const Plan& plan, const std::string& command) {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::string& text :
       {plan_file_to_json(problem, plan, std::nullopt, ""), std::string("\n"), command})
    for (const char letter : text)
      hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211U;
  return fmt::format("{:016x}", hash);
}

TrialRows::TrialRows(std::string path) : path_(std::move(path)) {
  std::error_code fault;
  if (std::filesystem::status(path_, fault).type() == std::filesystem::file_type::not_found) return;
  const std::string text = read_text_file(path_);
  const std::string whole = text.substr(0, text.rfind('\n') + 1);
  const CsvTable table = whole.empty() ? CsvTable() : parse_csv(path_, whole);
  // A file of another kind is left as it is, to its last letter.
  if (whole.empty() ? !csv_line(columns()).starts_with(text) : table.header != columns())
    throw InputError(path_, "is not a trial table (unexpected columns); choose a new file");
  for (const CsvTable::Row& row : table.rows) rows_.push_back(row_of(table, row));
  if (whole != text) write_text_file(path_, whole);
}

const TrialRow* TrialRows::find(const std::string& id) const {
  const auto last =
      std::find_if(rows_.rbegin(), rows_.rend(), [&](const TrialRow& row) { return row.id == id; });
  return last == rows_.rend() ? nullptr : &*last;
}

void TrialRows::append(const TrialRow& row, const Problem& problem) {
  std::error_code fault;
  const bool fresh =
      !std::filesystem::exists(path_) || std::filesystem::file_size(path_, fault) == 0;
  append_durably(path_, (fresh ? csv_line(columns()) : "") + line_of(row, problem));
  rows_.push_back(row);
}

}  // namespace plait::runtime
