#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/table.h"
#include "validation/published_runs.h"
#include "validation/validation.h"

namespace plait {

// Compare predictions with measured runs that others published.
struct ValidateRequest {
  std::string runs;  // a table of them; "" = the one that is compiled in
  RunGrouping by = RunGrouping::source;
  std::string grades;  // only rows of these, "AB"; "" = all
  Seconds least_step;  // shorter ones are left out
  bool literal = false;
  std::string profile;
  std::vector<std::string> catalogue;
  std::string constants;  // a file with constants of the analytic model to try; "" = none
  int threads = 1;
};

struct ValidateAnswer {
  RunGrouping by = RunGrouping::source;
  int threads = 1;  // as requested
  std::vector<MeasuredRun> runs;
  std::vector<RunPrediction> predictions;  // one for each run
  std::vector<Accuracy> accuracy;          // one for each source or device
  std::vector<std::string> unread;         // columns of the table that play no part
};

ValidateAnswer answer(const ValidateRequest& request);
std::string to_json(const ValidateAnswer& answer);
std::string as_text(const ValidateAnswer& answer, const Style& style);
// The rows that are furthest off, with what a term of theirs would have to be multiplied by to be
// right, and the one change that explains most of each source.
std::string worst_rows_text(const ValidateAnswer& answer, const Style& style);
// One line for each source and the mean over them, then the same.
std::string as_table(const ValidateAnswer& answer, const Style& style);
// The plan of every predicted row with its problem, as `plait plan -o` saves it: what was read from
// the row, and nothing else, decides the prediction. One after the other, as there may be many.
struct RowPlan {
  std::string name;  // of a file: source and row, once each
  std::string text;
};
void for_each_row_plan(const ValidateAnswer& answer,
                       const std::function<void(const RowPlan& plan)>& take);
// The command that predicts each of them by itself, where they are saved in `folder`, with the
// number that it gives: "plait estimate folder/a-1.json   # step_s 3.416".
std::string row_commands(const ValidateAnswer& answer, const std::string& folder);
// The prediction of every row.
std::string rows_csv(const ValidateAnswer& answer);

// All constants of the analytic model that apply to the request.
std::string constants_json(const ValidateRequest& request);

}  // namespace plait
