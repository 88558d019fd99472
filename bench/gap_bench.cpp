// How much of the step of the best plan is proven, on random mixed problems of 16 to 256 devices.
//
//   gap_bench [--seed 1] [--count 50] [--runs-on megatron] [--most-devices 256] [--long] [--rows]
//
// For every problem: the gap, the seconds that the search took, and what the best plan's step is
// made of. The summary says where the step is that no bound accounts for: the parts of the plans of
// the worst tenth. --long draws long sequences too, --rows prints the problems one by one.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cost/engine.h"
#include "plan/describe.h"
#include "plan/target.h"
#include "search/space/search.h"
#include "second_opinion/mixed_problem.h"

namespace {

using namespace plait;
using Clock = std::chrono::steady_clock;

struct Arguments {
  std::uint64_t seed = 1;
  int count = 50;
  int most_devices = 256;
  const Target* target = target_named("megatron");
  bool long_sequences = false;
  bool rows = false;
};

[[noreturn]] void complain(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(2);
}

Arguments parse(int argc, char** argv) {
  Arguments out;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--long") {
      out.long_sequences = true;
      continue;
    }
    if (flag == "--rows") {
      out.rows = true;
      continue;
    }
    if (i + 1 == argc) complain("a value is missing after " + flag);
    const std::string value = argv[++i];
    if (flag == "--seed")
      out.seed = std::stoull(value);
    else if (flag == "--count")
      out.count = std::stoi(value);
    else if (flag == "--most-devices")
      out.most_devices = std::stoi(value);
    else if (flag == "--runs-on")
      out.target = target_named(value);
    else
      complain("unknown flag " + flag);
  }
  if (out.target == nullptr) complain("no such program");
  return out;
}

// What the step of a plan is made of, in parts of it, seen from its busiest stage.
constexpr std::array kParts{"compute", "recompute", "exchange", "bubble", "finish"};
using Parts = std::array<double, kParts.size()>;

Parts parts_of(const RankedPlan& ranked) {
  const Estimate& cost = ranked.cost;
  const double m = ranked.plan.micro_batches;
  const StageCost* busiest = &cost.stages.front();
  const auto passes = [](const StageCost& stage) {
    return stage.forward_total() + stage.backward_total();
  };
  for (const StageCost& stage : cost.stages)
    if (passes(stage) > passes(*busiest)) busiest = &stage;
  const double compute = m * (busiest->forward + busiest->backward).value;
  const double recompute = m * busiest->recompute.value;
  const double exchange = m * (busiest->forward_comm + busiest->backward_comm).value;
  const double finish = cost.after_pipeline.value;
  const double step = cost.step.value;
  const double bubble = step - compute - recompute - exchange - finish;
  return {compute / step, recompute / step, exchange / step, bubble / step, finish / step};
}

struct Row {
  double gap = NAN;
  double seconds = 0;
  Parts parts{};
};

double quantile(std::vector<double> values, double part) {
  if (values.empty()) return NAN;
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

std::string text_of(const Parts& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += fmt::format("{}{} {:.0f} %", i > 0 ? ", " : "", kParts[i], 100 * parts[i]);
  return text;
}

Row measure(const Arguments& arguments, int i) {
  using second_opinion::Sequences;
  const auto sequences = arguments.long_sequences ? Sequences::up_to_64k : Sequences::usual;
  const auto mixed = second_opinion::mixed_problem(arguments.seed + static_cast<std::uint64_t>(i),
                                                   arguments.most_devices, sequences);
  Problem problem = mixed.problem;
  for (const DeviceType& type : problem.cluster.device_types)
    if (type.supports(DType::fp16) && !type.supports(DType::bf16))
      problem.job.attention = AttentionKernel::plain;
  SearchContext context{problem, {.keep = 1}, {}, {}, {}};
  context.options.target = *arguments.target;
  const auto begin = Clock::now();
  const SearchResult found = run_search(planners().front(), context);
  Row row;
  row.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  if (found.plans.empty()) return row;
  const RankedPlan& best = found.plans.front();
  row.parts = parts_of(best);
  if (found.lower_bound) row.gap = best.cost.step / *found.lower_bound - 1;
  if (arguments.rows)
    fmt::print("{} gap {:.4f} step {:.5g} in {:.3f} s; {}; {}\n    {}\n",
               arguments.seed + static_cast<std::uint64_t>(i), row.gap, best.cost.step.value,
               row.seconds, text_of(row.parts), mixed.arguments, describe(best.plan));
  std::fflush(stdout);
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  std::vector<Row> rows;
  for (int i = 0; i < arguments.count; ++i) {
    const Row row = measure(arguments, i);
    if (std::isfinite(row.gap)) rows.push_back(row);
  }
  if (rows.empty()) complain("nothing is proven of any problem");
  std::vector<double> gaps;
  std::vector<double> seconds;
  for (const Row& row : rows) {
    gaps.push_back(row.gap);
    seconds.push_back(row.seconds);
  }
  fmt::print("{} problems for {}: gap median {:.1f} %, ninth decile {:.1f} %, largest {:.1f} %\n",
             rows.size(), arguments.target->name, 100 * quantile(gaps, 0.5),
             100 * quantile(gaps, 0.9), 100 * quantile(gaps, 1));
  fmt::print("seconds: median {:.3f}, ninth decile {:.3f}, longest {:.3f}\n",
             quantile(seconds, 0.5), quantile(seconds, 0.9), quantile(seconds, 1));
  std::ranges::stable_sort(rows, std::ranges::greater{}, &Row::gap);
  const std::size_t worst = std::max<std::size_t>(1, rows.size() / 10);
  Parts mean{};
  for (std::size_t i = 0; i < worst; ++i)
    for (std::size_t p = 0; p < mean.size(); ++p)
      mean[p] += rows[i].parts[p] / static_cast<double>(worst);
  fmt::print("plans of the {} widest gaps: {}\n", worst, text_of(mean));
}
