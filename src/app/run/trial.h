#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/plan/plan.h"
#include "app/request/session.h"
#include "report/table.h"
#include "runtime/trial/trial_rows.h"

namespace plait {

// Run the best plans for a few steps each and keep the one that is measured to be the fastest.
struct TrialRequest {
  PlanRequest search;              // which plans, where `plans` is empty
  std::vector<std::string> plans;  // saved plans to try instead: files, or directories of them
  std::string launch;              // the shell command that trains; "" = plait train, here
  std::string train;               // more words for plait train
  std::optional<int> trials;  // how many of the best; 5 of a search and all of `plans` if absent
  std::string folder = "trials";  // where plans, logs and the table of results go
  std::string table;              // the table of results; "" = trials.csv in the folder
  bool retry = false;             // run those of the table again that were not measured
  runtime::TrialOptions limits;   // steps, times and patterns; the rest is set for each trial
};

// How a front end takes part. Every member may be empty.
struct TrialSession : Session {
  std::function<void(const std::string& sentence)> tell;  // of each trial, when it has ended
};

struct TrialAnswer {
  Problem problem;
  std::vector<RankedPlan> plans;        // that were tried, in the order of prediction
  std::vector<runtime::TrialRow> rows;  // of each of them
  std::string reason;                   // why there is nothing to try; "" = there is
  bool interrupted = false;
};

// How far predictions and trials agree.
struct TrialAgreement {
  int measured = 0;
  std::optional<double> median_error;  // of |predicted / measured - 1|
  std::optional<double> worst_error;
  std::optional<double> spearman;  // of predicted and measured times; needs three plans
  int best = -1;                   // of the rows: the least measured time; -1 = none
};
TrialAgreement agreement_of(const std::vector<runtime::TrialRow>& rows);

// The most plans that are tried for one request.
inline constexpr int kMaxTrials = 1000;

// RequestError and InputError when the request or what it names is wrong.
TrialAnswer answer(const TrialRequest& request, const TrialSession& session);

// The rows, in the order of prediction, and in a sentence what they show.
std::string as_text(const TrialAnswer& answer, const Style& style);
std::string to_json(const TrialAnswer& answer);

// The plan that was measured to be the best, with all that it was made from; "" = none.
std::string best_plan_file(const TrialAnswer& answer);

}  // namespace plait
