#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/problem.h"
#include "report/table.h"
#include "runtime/trial/trial_rows.h"

namespace plait {

// How far predictions and trials agree.
struct TrialAgreement {
  int measured = 0;
  std::optional<double> median_error;  // of |predicted / measured - 1|
  std::optional<double> worst_error;
  std::optional<double> spearman;  // of predicted and measured times; needs three plans
  int best = -1;                   // of the rows: the least measured time; -1 = none
};
TrialAgreement agreement_of(const std::vector<runtime::TrialRow>& rows);

// The rows, in the order of prediction, and in a sentence what they show.
std::string trials_as_text(const std::vector<runtime::TrialRow>& rows, const Style& style);
std::string trials_as_json(const std::vector<runtime::TrialRow>& rows);

}  // namespace plait
