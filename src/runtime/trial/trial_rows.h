#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"
#include "runtime/trial/trial.h"

namespace plait::runtime {

// A trial that was made: a line of the table that `plait trial` keeps.
struct TrialRow {
  std::string id;    // of problem, plan and command: trial_id()
  std::string plan;  // describe()
  Seconds predicted;
  Bytes predicted_memory;
  TrialResult result;

  // predicted / measured - 1; nothing where it was not measured.
  std::optional<double> error() const;
  std::optional<double> memory_error() const;
};

// Sixteen hexadecimal digits that change with anything that a trial depends on.
std::string trial_id(const Problem& problem, const Plan& plan, const std::string& command);

// The table in a file, which grows by a line after each trial, on the disk before the next begins.
// A last line that a crash cut off does not count. InputError for a file that is not such a table.
class TrialRows {
 public:
  explicit TrialRows(std::string path);
  const std::vector<TrialRow>& rows() const { return rows_; }
  // The last one of this id.
  const TrialRow* find(const std::string& id) const;
  void append(const TrialRow& row, const Problem& problem);

 private:
  std::string path_;
  std::vector<TrialRow> rows_;
};

}  // namespace plait::runtime
