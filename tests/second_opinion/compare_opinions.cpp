// Compares `auto` with the second opinion on random mixed problems, one line each.
//
//   compare_opinions [--seed 1] [--count 50] [--evaluations N | --seconds 10] [--threads 1]
//                    [--most-devices 256] [--effort normal] [--limit 60] [--plans] [--pins]
//                    [--model M --cluster C --batch B]
//
// --seconds is for each problem and thread. With --pins `auto` is also run with one dimension
// pinned, many times, and the pin that gives the fastest plan is named.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "io/cluster/catalogue.h"
#include "io/cluster/load_cluster.h"
#include "io/model/load_model.h"
#include "plan/describe.h"
#include "plan/names.h"
#include "search/space/search.h"
#include "second_opinion/local_search.h"
#include "second_opinion/mixed_problem.h"

namespace {

using namespace plait;
using namespace plait::second_opinion;
using Clock = std::chrono::steady_clock;

struct Arguments {
  std::uint64_t seed = 1;
  int count = 50;
  std::int64_t evaluations = std::numeric_limits<std::int64_t>::max();
  double seconds = 10;
  int threads = 1;
  int most_devices = 256;
  bool pins = false;
  bool plans = false;
  std::string model;
  std::string cluster;
  int batch = 64;
  Effort effort = Effort::normal;
  double limit = 60;  // seconds for auto
};

Arguments parse(int argc, char** argv) {
  Arguments out;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--pins") {
      out.pins = true;
      continue;
    }
    if (flag == "--plans") {
      out.plans = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    if (flag == "--seed")
      out.seed = std::stoull(value);
    else if (flag == "--count")
      out.count = std::stoi(value);
    else if (flag == "--evaluations")
      out.evaluations = std::stoll(value), out.seconds = 1e9;
    else if (flag == "--seconds")
      out.seconds = std::stod(value);
    else if (flag == "--threads")
      out.threads = std::stoi(value);
    else if (flag == "--most-devices")
      out.most_devices = std::stoi(value);
    else if (flag == "--model")
      out.model = value;
    else if (flag == "--cluster")
      out.cluster = value;
    else if (flag == "--batch")
      out.batch = std::stoi(value);
    else if (flag == "--effort")
      out.effort = effort_named(value).value();
    else if (flag == "--limit")
      out.limit = std::stod(value);
    else {
      std::fprintf(stderr, "unknown flag %s\n", flag.c_str());
      std::exit(2);
    }
  }
  if (!out.cluster.empty()) out.count = 1;
  return out;
}

MixedProblem problem_of(const Arguments& arguments, int i) {
  if (arguments.cluster.empty())
    return mixed_problem(arguments.seed + static_cast<std::uint64_t>(i), arguments.most_devices);
  MixedProblem out;
  out.problem.model = load_model(arguments.model, std::nullopt).model;
  out.problem.cluster = load_cluster(arguments.cluster).cluster;
  out.problem.job.global_batch = arguments.batch;
  out.problem.job.precision = Precision::fp16;
  out.problem.job.framework = find_framework(builtin_catalogue(), "", "framework");
  out.arguments = fmt::format("--model {} --cluster {} --global-batch {} --precision fp16",
                              arguments.model, arguments.cluster, arguments.batch);
  return out;
}

struct Pinned {
  std::string name = "-";
  Seconds step = Seconds(HUGE_VAL);
};

Pinned best_pin(const Problem& problem) {
  Pinned best;
  const auto look = [&](const std::string& name, const Pins& pins) {
    if (violation_of(problem, pins)) return;
    SearchContext context{problem, {.keep = 1}, {}, {}, {}};
    context.options.pins = pins;
    const SearchResult result = run_search(planners().front(), context);
    if (!result.plans.empty() && result.plans.front().cost.step < best.step)
      best = {name, result.plans.front().cost.step};
  };
  for (const int t : {1, 2, 4, 8}) look(fmt::format("--tp {}", t), {.tensor = t});
  for (const int p : {1, 2, 3, 4, 6, 8, 12, 16, 24})
    look(fmt::format("--pp {}", p), {.pipeline = p});
  for (int m = 1; m <= problem.job.global_batch; m *= 2)
    look(fmt::format("--micro-batches {}", m), {.micro_batches = m});
  for (const Schedule s : {Schedule::one_f_one_b, Schedule::interleaved, Schedule::zb_h1,
                           Schedule::zb_2p, Schedule::zb_v})
    look(fmt::format("--schedule {}", name_of(s)), {.schedule = s});
  return best;
}

struct Row {
  bool found = false;
  double ratio = 0;  // less one
  double gap = NAN;
  double seconds = 0;  // that auto took
  std::string line;
};

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Row compare(const Arguments& arguments, int i) {
  const MixedProblem mixed = problem_of(arguments, i);
  const Problem& problem = mixed.problem;
  Row row;
  const auto begin = Clock::now();
  SearchContext context{problem, {.keep = 3}, {}, {}, {}};
  context.options.effort = arguments.effort;
  context.options.time_limit = Seconds(arguments.limit);
  const SearchResult found = run_search(planners().front(), context);
  row.seconds = since(begin);
  std::vector<Plan> given;
  for (const RankedPlan& ranked : found.plans) given.push_back(ranked.plan);
  const CostEngine engine(problem);
  const auto second = Clock::now();
  Options options{.seed = arguments.seed + static_cast<std::uint64_t>(i),
                  .evaluations = arguments.evaluations};
  if (options.evaluations > 10'000'000) options.evaluations = 10'000'000;
  options.stop = [&] { return since(second) > arguments.seconds; };
  const auto opinion = second_opinion::second_opinion(engine, given, options);
  const Seconds own = found.plans.empty() ? Seconds(HUGE_VAL) : found.plans.front().cost.step;
  const Seconds other = opinion ? opinion->step : Seconds(HUGE_VAL);
  row.found = opinion.has_value();
  row.ratio = opinion ? own / other - 1 : 0;
  if (found.lower_bound) row.gap = own / *found.lower_bound - 1;
  const bool false_bound = found.lower_bound && other < (1 - 1e-9) * *found.lower_bound;
  row.line = fmt::format(
      "{:<6} n={:<4} auto {:<9.5g} gap {:<7.4f} in {:<7.3f} second {:<9.5g} ratio {:<7.4f} {}{}",
      arguments.seed + static_cast<std::uint64_t>(i), problem.cluster.device_count(), own.value,
      row.gap, row.seconds, other.value, row.ratio, opinion ? opinion->start : "-",
      false_bound ? " FALSE-BOUND" : "");
  if (arguments.pins) {
    const Pinned pin = best_pin(problem);
    row.line += fmt::format(" pin {:.4f} ({})", own / pin.step - 1, pin.name);
  }
  row.line += "  " + mixed.arguments;
  if (arguments.plans && !found.plans.empty())
    row.line += "\n    auto   " + describe(found.plans.front().plan) + "\n    second " +
                (opinion ? describe(opinion->plan) : "-");
  return row;
}

double quantile(std::vector<double> values, double part) {
  if (values.empty()) return NAN;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  std::vector<Row> rows(static_cast<std::size_t>(arguments.count));
  std::mutex printing;
  parallel_for(arguments.count, arguments.threads, [&](int i) {
    rows[i] = compare(arguments, i);
    const std::lock_guard lock(printing);
    std::puts(rows[i].line.c_str());
    std::fflush(stdout);
  });
  std::vector<double> ratios;
  std::vector<double> gaps;
  std::vector<double> seconds;
  for (const Row& row : rows) {
    if (row.found) ratios.push_back(row.ratio);
    if (std::isfinite(row.gap)) gaps.push_back(row.gap);
    seconds.push_back(row.seconds);
  }
  const auto above = [&](double limit) {
    return std::ranges::count_if(ratios, [&](double r) { return r > limit; });
  };
  std::puts(fmt::format("beaten by more than 1 %: {} of {}; 3 %: {}; 10 %: {}\n"
                        "ratio: median {:.4f}, p75 {:.4f}, p90 {:.4f}, worst {:.4f}\n"
                        "gap: median {:.4f}, p90 {:.4f} of {}\n"
                        "auto's seconds: median {:.3f}, p90 {:.3f}, worst {:.3f}",
                        above(0.01), ratios.size(), above(0.03), above(0.1), quantile(ratios, 0.5),
                        quantile(ratios, 0.75), quantile(ratios, 0.9), quantile(ratios, 1),
                        quantile(gaps, 0.5), quantile(gaps, 0.9), gaps.size(),
                        quantile(seconds, 0.5), quantile(seconds, 0.9), quantile(seconds, 1))
                .c_str());
}
