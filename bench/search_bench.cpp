// The planner against its bars: seconds, proven gap and evaluations of each problem, on two
// threads.
//
//   search_bench [NAME]     only the problems whose name contains NAME

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
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

struct Outcome {
  double gap = NAN;
  std::int64_t evaluations = 0;
};

struct Bar {
  std::string problem;
  double seconds = 0;
  double gap = NAN;  // NAN = none is asked for
  std::function<Outcome()> run;
  std::function<double()> proven_gap{};
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

// One node of 512 GPUs is lost.
Bar replanning() {
  const Problem before =
      problem_of("gpt-neo-2.7b", "16xA100-40GB:8+96xV100-16GB:4", 2048, Precision::fp16);
  const SearchResult found = run_search(planners().front(), context_of(before));
  ClusterChange change;
  change.lost.assign(before.cluster.device_count(), false);
  for (int d = 0; d < 8; ++d) change.lost[d] = true;
  const ChangedCluster changed = changed_cluster(before.cluster, change);
  Problem after = before;
  after.cluster = changed.cluster;
  const Plan old_plan = found.plans.front().plan;
  return {
      "replan 512 GPUs that lost a node", 0.1, NAN, [=] {
        return outcome_of(
            replan(planners().front(), context_of(after), before, old_plan, changed.before).search);
      }};
}

std::vector<Bar> bars() {
  const auto neo = [](const std::string& cluster) {
    return problem_of("gpt-neo-2.7b", cluster, 2048, Precision::fp16);
  };
  const auto llama = [](const std::string& cluster) {
    return problem_of("llama-3-405b", cluster, 2048, Precision::bf16);
  };
  std::vector<Bar> out;
  out.push_back(
      planning("GPT-Neo-2.7B, 32 A100 + 96 V100", 0.2, 0.02, neo("4xA100-40GB:8+24xV100-16GB:4")));
  out.push_back(planning("GPT-Neo-2.7B, 80 A100 + 240 V100", 0.4, 0.02,
                         neo("10xA100-40GB:8+60xV100-16GB:4")));
  out.push_back(planning("GPT-Neo-2.7B, 128 A100 + 384 V100", 0.8, 0.02,
                         neo("16xA100-40GB:8+96xV100-16GB:4")));
  out.push_back(planning("GPT-Neo-2.7B, 3 types x 256", 2, 0.03,
                         neo("32xA100-40GB:8+64xV100-16GB:4+64xT4:4")));
  out.push_back(planning("AMP, 16 T4, GPT-2", 0.02, NAN,
                         problem_of("gpt2-medium", example("amp_16xT4"), 32)));
  out.push_back(planning("AMP, 12 V100 + 4 T4, GPT-2", 0.02, NAN,
                         problem_of("gpt2-medium", example("amp_12xV100_4xT4"), 32)));
  out.push_back(planning("AMP, 16 V100, TransGAN", 0.02, NAN,
                         problem_of("transgan", "4xV100-16GB:4/10Gbps", 64)));
  out.push_back(
      planning("FASOP, 4 A100 + 28 A10, T5", 0.02, NAN,
               problem_of("t5-large", example("fasop_4xA100_28xA10"), 128, Precision::fp16, 512)));
  out.push_back(fasop_sweep());
  out.push_back(planning("Metis, 8 nodes x 8, 3 types, 24 layers", 0.1, NAN,
                         problem_of("gpt2-medium", "3xA100-40GB:8+3xV100-16GB:8+2xT4:8", 128)));
  out.push_back(planning("Llama-3-405B, 8,192 H100", 1, NAN, llama("1024xH100:8")));
  out.push_back(planning("Llama-3-405B, 16,384 H100", 1, NAN, llama("2048xH100:8")));
  out.push_back(planning("Llama-3-405B, 32,768 H100", 3, NAN, llama("4096xH100:8")));
  out.push_back(planning("Llama-3-405B, 4 types x 4,096", 10, 0.05,
                         llama("512xH100:8+512xH200:8+512xA100-80GB:8+512xB200:8")));
  out.push_back(replanning());
  out.push_back(planning("Llama-2-7B, 32 A100 + 32 V100", 0.2, NAN,
                         problem_of("llama-2-7b", "4xA100-80GB:8+8xV100-16GB:4", 512)));
  out.push_back(
      planning("Mixtral-8x7B, 32 H100 + 32 A100", 0.2, NAN,
               problem_of("mixtral-8x7b", "4xH100:8+4xA100-80GB:8", 512, Precision::bf16)));
  out.push_back(planning("GPT-2 XL, 4 A100 + 28 A10", NAN, NAN,
                         problem_of("gpt2-xl", example("fasop_4xA100_28xA10"), 64)));
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
  std::printf("%-46s %9s %9s %9s %9s %12s  %s\n", "problem", "seconds", "of CPU", "bar", "gap",
              "evaluations", "bar of gap");
  for (const Bar& bar : bars()) {
    if (bar.problem.find(wanted) == std::string::npos) continue;
    double seconds = HUGE_VAL;
    double cpu = HUGE_VAL;
    Outcome outcome;
    double spent = 0;
    for (int i = 0; i < kRuns || spent < kEnough; ++i) {
      const double cpu_before = cpu_seconds();
      const auto begin = std::chrono::steady_clock::now();
      outcome = bar.run();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      seconds = std::min(seconds, took.count());
      cpu = std::min(cpu, cpu_seconds() - cpu_before);
      spent += took.count();
      if (took.count() > 3) break;
    }
    if (bar.proven_gap) outcome.gap = bar.proven_gap();
    const bool late = seconds > bar.seconds;
    const bool loose = outcome.gap > bar.gap;
    missed |= late || loose;
    std::printf("%-46s %9.3f %9.3f %9.2f %9s %12lld  %-8s%s%s\n", bar.problem.c_str(), seconds, cpu,
                bar.seconds, percent(outcome.gap).c_str(),
                static_cast<long long>(outcome.evaluations), percent(bar.gap).c_str(),
                late ? " LATE" : "", loose ? " LOOSE" : "");
    std::fflush(stdout);
  }
  return missed ? 1 : 0;
}
