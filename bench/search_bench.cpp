// The planner against its bars: seconds, proven gap and evaluations of each problem, on two
// threads. Rows that end in "1F1B, in order" are of the question that the bars were once set for:
// see regular().
//
//   search_bench [NAME]     only the problems whose name contains NAME

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/cluster/load_cluster.h"
#include "io/model/load_model.h"
#include "search/clusters/pareto.h"
#include "search/clusters/replan.h"
#include "search/space/search.h"

namespace {

using namespace plait;

constexpr int kThreads = 2;
// Every problem is run three times and then for half a second; the fastest run counts.
constexpr int kRuns = 3;
constexpr double kEnough = 0.5;
constexpr double kRounded = 5e-4;  // gaps of bars are

struct Outcome {
  double gap = NAN;
  std::int64_t evaluations = 0;
  double seconds = NAN;  // NAN = of the whole run
};

struct Bar {
  std::string problem;
  double seconds = 0;
  double gap = NAN;  // NAN = none is asked for
  std::function<Outcome()> run;
  std::function<double()> proven_gap{};
  std::function<void()> prepare{};
};

Problem problem_of(const std::string& model, const std::string& cluster, int batch,
                   Precision precision = Precision::fp16, std::optional<int> sequence = {}) {
  Problem problem;
  problem.model = load_model(model, sequence).model;
  problem.cluster = load_cluster(cluster).cluster;
  problem.job.global_batch = batch;
  problem.job.precision = precision;
  problem.job.framework = find_framework(builtin_catalogue(), "megatron", "bench");
  return problem;
}

std::string example(const std::string& name) {
  return std::string(PLAIT_SOURCE_DIR) + "/examples/clusters/" + name + ".json";
}

SearchContext context_of(const Problem& problem) {
  SearchContext context{problem, {}, {}, {}, {}};
  context.options.threads = kThreads;
  return context;
}

Outcome outcome_of(const SearchResult& result) {
  Outcome outcome{NAN, result.evaluations};
  if (!result.plans.empty() && result.lower_bound)
    outcome.gap = result.plans.front().cost.step / *result.lower_bound - 1;
  return outcome;
}

Outcome plan(const Problem& problem) {
  return outcome_of(run_search(planners().front(), context_of(problem)));
}

double gap_of(const Problem& problem) {
  SearchContext context = context_of(problem);
  context.options.pins.schedule = Schedule::one_f_one_b;
  return outcome_of(run_search(planners().front(), context)).gap;
}

// Plans of whole stages in the order of the pools, under 1F1B, and the bound of such plans: before
// there were moves, that was the search, and its times of that day are the bars of these rows.
// Today's search still begins so. These are the passes of then, and what narrows the problem down
// before them; the first moves are kept aside until later passes.
Outcome regular(const Problem& problem) {
  SearchContext context = context_of(problem);
  context.options.pins.schedule = Schedule::one_f_one_b;
  const SearchResult result = run_search(planners().front(), context);
  Outcome outcome{NAN, 0, 0};
  const std::vector<PassReport>& passes = result.passes;
  const auto later = [](const PassReport& pass) {
    return pass.name == "one layout" || pass.name == "recompute by stage" ||
           pass.name == "fewer nodes" || pass.name == "moves" || pass.name == "bound of all";
  };
  for (auto it = passes.begin(); it != passes.end() && !later(*it); ++it) {
    if (it->name == "first moves") continue;
    outcome.seconds += it->elapsed.value;
    outcome.evaluations += it->evaluations;
    outcome.gap = it->best / it->lower_bound - 1;
  }
  return outcome;
}

Bar in_order(const std::string& name, double seconds, double gap, const Problem& problem) {
  return {name + ", 1F1B, in order", seconds, gap, [problem] { return regular(problem); }};
}

Bar planning(std::string name, double seconds, double gap, const Problem& problem) {
  return {std::move(name), seconds, gap, [problem] { return plan(problem); },
          [problem] { return gap_of(problem); }};
}

// Every mix of up to eight nodes of eight A100 and of eight A10: FASOP's sweep.
Bar fasop_sweep() {
  Problem problem =
      problem_of("gpt2-xl", "8xA100-40GB:8/400Gbps+8xA10:8/100Gbps", 64, Precision::fp16);
  for (std::size_t n = 0; n < problem.cluster.nodes.size(); ++n)
    problem.cluster.nodes[n].price = UsdPerSecond((n < 8 ? 32.7726 : 9.773) / 3600);
  return {"GPT-2 XL, Pareto front of 80 clusters (FASOP)", 1, NAN, [problem] {
            const ParetoResult result =
                pareto_front(planners().front(), context_of(problem), mix_kinds(problem.cluster));
            return Outcome{NAN, result.evaluations};
          }};
}

// One node of 512 GPUs is lost; what ran on all of them is searched first, and does not count.
Bar replanning() {
  struct Loss {
    Problem before;
    Problem after;
    Plan old_plan;
    ChangedCluster changed;
  };
  const auto loss = std::make_shared<Loss>();
  const auto prepare = [loss] {
    loss->before =
        problem_of("gpt-neo-2.7b", "16xA100-40GB:8+96xV100-16GB:4", 2048, Precision::fp16);
    const SearchResult found = run_search(planners().front(), context_of(loss->before));
    loss->old_plan = found.plans.front().plan;
    ClusterChange change;
    change.lost.assign(loss->before.cluster.device_count(), false);
    for (int d = 0; d < 8; ++d) change.lost[d] = true;
    loss->changed = changed_cluster(loss->before.cluster, change);
    loss->after = loss->before;
    loss->after.cluster = loss->changed.cluster;
  };
  const auto run = [loss] {
    const SearchContext context = context_of(loss->after);
    return outcome_of(
        replan(planners().front(), context, loss->before, loss->old_plan, loss->changed.before)
            .search);
  };
  return {.problem = "replan 512 GPUs that lost a node",
          .seconds = 0.1,
          .run = run,
          .prepare = prepare};
}

std::vector<Bar> bars() {
  const auto neo = [](const std::string& cluster) {
    return problem_of("gpt-neo-2.7b", cluster, 2048, Precision::fp16);
  };
  const auto llama = [](const std::string& cluster) {
    return problem_of("llama-3-405b", cluster, 2048, Precision::bf16);
  };
  struct Row {
    std::string name;
    double seconds;
    double gap;
    double seconds_in_order;  // NAN = not measured then
    double gap_in_order;
    Problem problem;
  };
  std::vector<Row> rows{
      {"GPT-Neo-2.7B, 32 A100 + 96 V100", 0.2, 0.02, 0.03, 0, neo("4xA100-40GB:8+24xV100-16GB:4")},
      {"GPT-Neo-2.7B, 80 A100 + 240 V100", 0.4, 0.02, 0.03, 0,
       neo("10xA100-40GB:8+60xV100-16GB:4")},
      {"GPT-Neo-2.7B, 128 A100 + 384 V100", 0.8, 0.02, 0.02, 0,
       neo("16xA100-40GB:8+96xV100-16GB:4")},
      {"GPT-Neo-2.7B, 3 types x 256", 2, 0.03, 0.28, 0.022,
       neo("32xA100-40GB:8+64xV100-16GB:4+64xT4:4")},
      {"AMP, 16 T4, GPT-2", 0.02, NAN, 0.004, 0,
       problem_of("gpt2-medium", example("amp_16xT4"), 32)},
      {"AMP, 12 V100 + 4 T4, GPT-2", 0.02, NAN, 0.017, 0.88,
       problem_of("gpt2-medium", example("amp_12xV100_4xT4"), 32)},
      {"AMP, 16 V100, TransGAN", 0.02, NAN, 0.011, 0.11,
       problem_of("transgan", "4xV100-16GB:4/10Gbps", 64)},
      {"FASOP, 4 A100 + 28 A10, T5", 0.02, NAN, 0.017, 0.28,
       problem_of("t5-large", example("fasop_4xA100_28xA10"), 128, Precision::fp16, 512)},
      {"Metis, 8 nodes x 8, 3 types, 24 layers", 0.1, NAN, 0.02, 0,
       problem_of("gpt2-medium", "3xA100-40GB:8+3xV100-16GB:8+2xT4:8", 128)},
      {"Llama-3-405B, 8,192 H100", 1, NAN, NAN, NAN, llama("1024xH100:8")},
      {"Llama-3-405B, 16,384 H100", 1, NAN, 0.10, 0, llama("2048xH100:8")},
      {"Llama-3-405B, 32,768 H100", 3, NAN, 0.17, 0, llama("4096xH100:8")},
      {"Llama-3-405B, 4 types x 4,096", 10, 0.05, 1.3, 0.017,
       llama("512xH100:8+512xH200:8+512xA100-80GB:8+512xB200:8")},
      {"Llama-2-7B, 32 A100 + 32 V100", 0.2, NAN, NAN, NAN,
       problem_of("llama-2-7b", "4xA100-80GB:8+8xV100-16GB:4", 512)},
      {"Mixtral-8x7B, 32 H100 + 32 A100", 0.2, NAN, NAN, NAN,
       problem_of("mixtral-8x7b", "4xH100:8+4xA100-80GB:8", 512, Precision::bf16)},
      {"GPT-2 XL, 4 A100 + 28 A10", NAN, NAN, NAN, NAN,
       problem_of("gpt2-xl", example("fasop_4xA100_28xA10"), 64)},
  };
  std::vector<Bar> out;
  for (const Row& row : rows) {
    out.push_back(planning(row.name, row.seconds, row.gap, row.problem));
    if (!std::isnan(row.seconds_in_order))
      out.push_back(in_order(row.name, row.seconds_in_order, row.gap_in_order, row.problem));
  }
  out.push_back(fasop_sweep());
  out.push_back(replanning());
  return out;
}

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

std::string percent(double value) {
  if (std::isnan(value)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * value);
  return text;
}

}  // namespace

int main(int count, char** words) {
  const std::string wanted = count > 1 ? words[1] : "";
  bool missed = false;
  std::printf("%-56s %9s %9s %9s %9s %12s  %s\n", "problem", "seconds", "of CPU", "bar", "gap",
              "evaluations", "bar of gap");
  for (const Bar& bar : bars()) {
    if (bar.problem.find(wanted) == std::string::npos) continue;
    if (bar.prepare) bar.prepare();
    double seconds = HUGE_VAL;
    double cpu = HUGE_VAL;
    Outcome outcome;
    double spent = 0;
    for (int i = 0; i < kRuns || spent < kEnough; ++i) {
      const double cpu_before = cpu_seconds();
      const auto begin = std::chrono::steady_clock::now();
      outcome = bar.run();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      const bool whole = std::isnan(outcome.seconds);
      seconds = std::min(seconds, whole ? took.count() : outcome.seconds);
      cpu = whole ? std::min(cpu, cpu_seconds() - cpu_before) : NAN;
      spent += took.count();
      if (took.count() > 3) break;
    }
    if (bar.proven_gap) outcome.gap = bar.proven_gap();
    const bool late = seconds > bar.seconds;
    const bool loose = outcome.gap > bar.gap + kRounded;
    missed |= late || loose;
    std::printf("%-56s %9.3f %9.3f %9.3f %9s %12lld  %-8s%s%s\n", bar.problem.c_str(), seconds, cpu,
                bar.seconds, percent(outcome.gap).c_str(),
                static_cast<long long>(outcome.evaluations), percent(bar.gap).c_str(),
                late ? " LATE" : "", loose ? " LOOSE" : "");
    std::fflush(stdout);
  }
  return missed ? 1 : 0;
}
