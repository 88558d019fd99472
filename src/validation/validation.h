#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validation/measured_run.h"

namespace plait {

// Where the time of a step goes, as the busiest stage sees it; together they are the step.
struct StepTerms {
  Seconds compute;        // kernels, recompute included
  Seconds host;           // what launching adds; a part of compute where it was not asked for
  Seconds communication;  // exposed, of tensor, context and expert groups and of gathered weights
  Seconds pipeline;       // waiting for other stages
  Seconds data;           // sums of gradients and gathered weights after the pipeline
  Seconds optimizer;
};

// What the cost engine says of one measured run; empty for a refused one.
struct RunPrediction {
  bool made = false;
  Seconds step;
  StepTerms terms;
  Bytes memory;  // of the fullest device, counted as MeasuredRun::memory_meaning says
  bool fits = true;
};

// Simulates the plan of every run that is not refused; runs of one problem share an engine. The
// result is in the order of the runs and the same for any number of threads.
std::vector<RunPrediction> predict_runs(const std::vector<MeasuredRun>& runs, int threads = 1);

// Takes what launching adds out of StepTerms::compute: the time by which steps would be shorter if
// captured ones were replayed. As long again as the predictions.
void tell_host_apart(const std::vector<MeasuredRun>& runs, std::vector<RunPrediction>& predictions,
                     int threads = 1);

// How far off predictions are that were made for one set of runs. Errors are predicted / measured -
// 1; nothing is given where no run tells.
struct Accuracy {
  std::string name;  // of the source or the device
  int rows = 0;
  int predicted = 0;
  std::map<std::string, int> refusals;  // reason -> rows

  int timed = 0;  // predicted rows with a measured time
  std::optional<double> mape;
  std::optional<double> median_ape;
  std::optional<double> bias;  // mean signed error
  std::string worst_row;
  std::optional<double> worst_error;
  std::optional<double> spearman;
  std::map<std::string, double> mape_by_grade;

  // Another predictor on those of the rows that it was used on, and plait on the same rows.
  std::string other;
  int with_other = 0;
  std::optional<double> others_mape;
  std::optional<double> mape_beside_other;

  // Within the jobs of at least kRegretRows rows: measured time of the plan that is predicted to be
  // the best (the best of the best five) over the least measured. Worst job, and mean over jobs.
  int jobs = 0;
  std::optional<double> top1_regret;
  std::optional<double> top1_regret_mean;
  std::optional<double> top5_regret;

  int with_memory = 0;
  std::optional<double> memory_mape;
  std::optional<double> memory_bias;

  // Runs that failed (out of memory) and ones that did not, by what is predicted.
  int failed_not_fitting = 0;  // right
  int failed_fitting = 0;      // wrong
  int ran_not_fitting = 0;     // wrong
  int ran_unstated = 0;        // ran, are predicted not to fit, and do not say what they recompute

  int refused() const { return rows - predicted; }
};

inline constexpr int kRegretRows = 3;

// Mean over sources, each counting once however many rows it has.
struct MeanOverSources {
  int sources = 0;  // with a measured time
  std::optional<double> mape;
  int memory_sources = 0;
  std::optional<double> memory_mape;
  int rows = 0;             // predicted, which ran
  int ran_not_fitting = 0;  // of those, called out of memory
};
MeanOverSources mean_over(const std::vector<Accuracy>& sources);

// By how much a term alone would have to be multiplied for the prediction to be right; nothing
// where that is impossible, or where the term is less than a hundredth of the step.
std::optional<double> needed_factor(Seconds term, Seconds predicted, Seconds measured);

enum class RunGrouping { source, device };

// One entry for each source or device, in order of first appearance.
std::vector<Accuracy> accuracy_by(RunGrouping grouping, const std::vector<MeasuredRun>& runs,
                                  const std::vector<RunPrediction>& predictions);

// Rank correlation of Spearman: Pearson's of the ranks, ties taking their mean rank. Nothing for
// fewer than three points or when one side does not vary.
std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b);

// Measured time of the best of the `top` plans that are predicted to be fastest, over the least
// measured. Where predictions are equal, the mean of their measured times counts.
double regret(const std::vector<double>& predicted, const std::vector<double>& measured, int top);

}  // namespace plait
