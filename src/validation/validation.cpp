#include "validation/validation.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "base/parallel.h"
#include "cost/engine.h"

namespace plait {
namespace {

int size_of(const auto& list) { return static_cast<int>(list.size()); }

std::vector<int> order_of(const std::vector<double>& values) {
  std::vector<int> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) { return values[a] < values[b]; });
  return order;
}

std::vector<double> ranks_of(const std::vector<double>& values) {
  const std::vector<int> order = order_of(values);
  std::vector<double> ranks(values.size());
  for (int i = 0; i < size_of(order);) {
    int j = i;
    while (j < size_of(order) && values[order[j]] == values[order[i]]) ++j;
    for (int k = i; k < j; ++k) ranks[order[k]] = (i + j - 1) / 2.0;
    i = j;
  }
  return ranks;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<double> magnitudes(std::vector<double> values) {
  for (double& value : values) value = std::abs(value);
  return values;
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

// Of the stage that computes longest; what is left of the pipeline is waiting for others.
StepTerms terms_of(const Estimate& estimate, int micro_batches) {
  const auto busy = [](const StageCost& stage) {
    return stage.forward_total() + stage.backward_total();
  };
  const StageCost& stage = *std::ranges::max_element(
      estimate.stages, {}, [&](const StageCost& s) { return busy(s).value; });
  StepTerms terms;
  terms.compute = micro_batches * (stage.forward + stage.backward + stage.recompute);
  terms.communication = micro_batches * (stage.forward_comm + stage.backward_comm);
  terms.optimizer = stage.optimizer;
  terms.data = stage.gradient_sync + stage.tied_sync;
  terms.pipeline =
      estimate.step - terms.compute - terms.communication - terms.optimizer - terms.data;
  return terms;
}

// What PyTorch's allocator has reserved over what it has given out, at its most: the median of 13
// steps of GPT-2 on one H200 with more than 10 GiB (1.02 to 1.17).
constexpr double kReservedShare = 1.05;

// What one run's plan costs.
RunPrediction predict(const CostEngine& engine, const MeasuredRun& run) {
  const Estimate estimate = engine.simulate(run.plan);
  RunPrediction prediction{.made = true,
                           .step = estimate.step,
                           .terms = terms_of(estimate, run.plan.micro_batches),
                           .memory = Bytes(0),
                           .fits = estimate.fits};
  for (const StageCost& stage : estimate.stages) {
    Bytes held = stage.peak_memory();
    if (run.memory_meaning == MemoryMeaning::device) held += stage.reserve;
    if (run.memory_meaning == MemoryMeaning::reserved) held = kReservedShare * held;
    prediction.memory = std::max(prediction.memory, held);
  }
  return prediction;
}

// The rows of one source or device, collected.
class Tally {
 public:
  explicit Tally(std::string name) { accuracy_.name = std::move(name); }

  void add(const MeasuredRun& run, const RunPrediction& prediction) {
    ++accuracy_.rows;
    if (!prediction.made) {
      ++accuracy_.refusals[run.refusal];
      return;
    }
    ++accuracy_.predicted;
    if (run.failed)
      ++(prediction.fits ? accuracy_.failed_fitting : accuracy_.failed_not_fitting);
    else if (!prediction.fits)
      ++(run.says_what_is_kept ? accuracy_.ran_not_fitting : accuracy_.ran_unstated);
    if (run.step) add_time(run, prediction.step.value, run.step->value);
    if (run.memory) memory_errors_.push_back(prediction.memory / *run.memory - 1);
  }

  Accuracy finish() {
    accuracy_.timed = size_of(errors_);
    if (!errors_.empty()) {
      const std::vector<double> sizes = magnitudes(errors_);
      accuracy_.mape = mean_of(sizes);
      accuracy_.median_ape = median_of(sizes);
      accuracy_.bias = mean_of(errors_);
      accuracy_.spearman = spearman(predicted_, measured_);
    }
    for (const auto& [grade, errors] : errors_by_grade_)
      accuracy_.mape_by_grade[grade] = mean_of(magnitudes(errors));
    accuracy_.with_other = size_of(others_errors_);
    if (!others_errors_.empty()) {
      accuracy_.others_mape = mean_of(magnitudes(others_errors_));
      accuracy_.mape_beside_other = mean_of(magnitudes(errors_beside_));
    }
    accuracy_.with_memory = size_of(memory_errors_);
    if (!memory_errors_.empty()) {
      accuracy_.memory_mape = mean_of(magnitudes(memory_errors_));
      accuracy_.memory_bias = mean_of(memory_errors_);
    }
    add_regrets();
    return std::move(accuracy_);
  }

 private:
  struct JobTimes {
    std::vector<double> predicted;
    std::vector<double> measured;
  };

  void add_time(const MeasuredRun& run, double predicted, double measured) {
    const double error = predicted / measured - 1;
    if (!accuracy_.worst_error || std::abs(error) > std::abs(*accuracy_.worst_error)) {
      accuracy_.worst_error = error;
      accuracy_.worst_row = run.id;
    }
    errors_.push_back(error);
    if (run.others_step) {
      accuracy_.other = run.other;
      others_errors_.push_back(run.others_step->value / measured - 1);
      errors_beside_.push_back(error);
    }
    errors_by_grade_[run.grade.empty() ? "?" : run.grade].push_back(error);
    predicted_.push_back(predicted);
    measured_.push_back(measured);
    JobTimes& job = jobs_[run.job];
    job.predicted.push_back(predicted);
    job.measured.push_back(measured);
  }

  void add_regrets() {
    std::vector<double> first;
    std::vector<double> five;
    for (const auto& [name, job] : jobs_) {
      if (size_of(job.measured) < kRegretRows) continue;
      first.push_back(regret(job.predicted, job.measured, 1));
      five.push_back(regret(job.predicted, job.measured, 5));
    }
    accuracy_.jobs = size_of(first);
    if (first.empty()) return;
    accuracy_.top1_regret = *std::ranges::max_element(first);
    accuracy_.top1_regret_mean = mean_of(first);
    accuracy_.top5_regret = *std::ranges::max_element(five);
  }

  Accuracy accuracy_;
  std::vector<double> errors_;
  std::map<std::string, std::vector<double>> errors_by_grade_;
  std::vector<double> predicted_;
  std::vector<double> measured_;
  std::vector<double> memory_errors_;
  std::vector<double> others_errors_;
  std::vector<double> errors_beside_;
  std::map<std::string, JobTimes> jobs_;
};

}  // namespace

MeanOverSources mean_over(const std::vector<Accuracy>& sources) {
  MeanOverSources out;
  double time = 0;
  double memory = 0;
  for (const Accuracy& source : sources) {
    out.rows += source.predicted - source.failed_fitting - source.failed_not_fitting;
    out.ran_not_fitting += source.ran_not_fitting;
    if (source.mape) {
      ++out.sources;
      time += *source.mape;
    }
    if (source.memory_mape) {
      ++out.memory_sources;
      memory += *source.memory_mape;
    }
  }
  if (out.sources > 0) out.mape = time / out.sources;
  if (out.memory_sources > 0) out.memory_mape = memory / out.memory_sources;
  return out;
}

std::optional<double> needed_factor(Seconds term, Seconds predicted, Seconds measured) {
  constexpr double kLeastShare = 0.01;
  if (term < kLeastShare * predicted) return std::nullopt;
  const double factor = (measured - (predicted - term)) / term;
  return factor > 0 ? std::optional(factor) : std::nullopt;
}

namespace {

// Calls `work` with an engine of each problem and its rows; engines of captured steps, if asked.
void for_each_problem(const std::vector<MeasuredRun>& runs, int threads, bool captured,
                      const std::function<void(const CostEngine&, int row)>& work) {
  std::vector<const Problem*> problems;
  std::map<const Problem*, std::vector<int>> of_problem;
  for (int i = 0; i < size_of(runs); ++i) {
    if (!runs[i].problem) continue;
    std::vector<int>& rows = of_problem[runs[i].problem.get()];
    if (rows.empty()) problems.push_back(runs[i].problem.get());
    rows.push_back(i);
  }
  parallel_for(size_of(problems), threads, [&](int p) {
    Problem problem = *problems[p];
    if (captured) problem.job.graph_capture = true;
    const CostEngine engine(problem);
    for (const int i : of_problem.at(problems[p])) work(engine, i);
  });
}

}  // namespace

std::vector<RunPrediction> predict_runs(const std::vector<MeasuredRun>& runs, int threads) {
  std::vector<RunPrediction> predictions(runs.size());
  for_each_problem(runs, threads, false, [&](const CostEngine& engine, int row) {
    predictions[row] = predict(engine, runs[row]);
  });
  return predictions;
}

void tell_host_apart(const std::vector<MeasuredRun>& runs, std::vector<RunPrediction>& predictions,
                     int threads) {
  for_each_problem(runs, threads, true, [&](const CostEngine& engine, int row) {
    StepTerms& terms = predictions[row].terms;
    const Seconds saved = predictions[row].step - engine.simulate(runs[row].plan).step;
    terms.host = std::clamp(saved, Seconds(0), terms.compute);
    terms.compute -= terms.host;
  });
}

std::vector<Accuracy> accuracy_by(RunGrouping grouping, const std::vector<MeasuredRun>& runs,
                                  const std::vector<RunPrediction>& predictions) {
  PLAIT_CHECK(runs.size() == predictions.size());
  std::vector<Tally> tallies;
  std::map<std::string, int> position;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string& name = grouping == RunGrouping::source ? runs[i].source : runs[i].device;
    const auto [found, is_new] = position.emplace(name, size_of(tallies));
    if (is_new) tallies.emplace_back(name);
    tallies[found->second].add(runs[i], predictions[i]);
  }
  std::vector<Accuracy> out;
  for (Tally& tally : tallies) out.push_back(tally.finish());
  return out;
}

std::optional<double> spearman(const std::vector<double>& a, const std::vector<double>& b) {
  PLAIT_CHECK(a.size() == b.size());
  if (a.size() < 3) return std::nullopt;
  const std::vector<double> x = ranks_of(a);
  const std::vector<double> y = ranks_of(b);
  const double mean = (static_cast<double>(a.size()) - 1) / 2;
  double xy = 0;
  double xx = 0;
  double yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  if (xx == 0 || yy == 0) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

double regret(const std::vector<double>& predicted, const std::vector<double>& measured, int top) {
  PLAIT_CHECK(!predicted.empty() && predicted.size() == measured.size());
  const std::vector<int> order = order_of(predicted);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < std::min(top, size_of(order));) {
    int j = i;
    double sum = 0;
    while (j < size_of(order) && predicted[order[j]] == predicted[order[i]])
      sum += measured[order[j++]];
    best = std::min(best, sum / (j - i));
    i = j;
  }
  return best / *std::ranges::min_element(measured);
}

}  // namespace plait
