// Hunts for bounds that are above a plan: random mixed problems, random jobs, random pins.
//
//   compare_bounds [--seed 1] [--count 50] [--most-devices 64] [--evaluations 600] [--masks 6]
//
// The second opinion finds a plan of each problem. Its own values are pinned, some of them at a
// time, so that it is a plan of every search that is made; and so is what is found with more pins.
// No bound may be above any of them. Bounds of all plans are asked for more than the best one
// known.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "io/cluster/catalogue.h"
#include "plan/check.h"
#include "plan/describe.h"
#include "search/bound/cluster_lower_bound.h"
#include "search/bound/cover/cover_bound.h"
#include "search/space/search.h"
#include "second_opinion/local_search.h"
#include "second_opinion/mixed_problem.h"

namespace {

using namespace plait;
using Random = std::mt19937_64;

constexpr double kRounding = 1e-9;

struct Tally {
  int problems = 0;
  int bounds = 0;
  int wrong = 0;
  int tight = 0;  // of these, within a tenth of the plan
};

// The dimensions of the plan that may be pinned, each for itself.
std::vector<void (*)(const Plan&, Pins&)> dimensions_of(const Plan& plan) {
  std::vector<void (*)(const Plan&, Pins&)> out{
      [](const Plan& p, Pins& pins) { pins.pipeline = p.stage_count(); },
      [](const Plan& p, Pins& pins) { pins.micro_batches = p.micro_batches; },
      [](const Plan& p, Pins& pins) { pins.zero = p.zero; },
      [](const Plan& p, Pins& pins) { pins.context = p.context; },
  };
  if (plan.stage_count() > 1)
    out.push_back([](const Plan& p, Pins& pins) { pins.schedule = p.schedule; });
  std::set<int> tensor;
  std::set<int> data;
  std::set<Recompute> recompute;
  for (const Stage& stage : plan.stages)
    for (const Span& span : stage.spans) {
      tensor.insert(span.tensor);
      data.insert(span.data);
      recompute.insert(span.recompute);
    }
  if (tensor.size() == 1)
    out.push_back([](const Plan& p, Pins& pins) { pins.tensor = p.stages[0].spans[0].tensor; });
  if (data.size() == 1)
    out.push_back([](const Plan& p, Pins& pins) { pins.data = p.stages[0].spans[0].data; });
  if (recompute.size() == 1)
    out.push_back(
        [](const Plan& p, Pins& pins) { pins.recompute = p.stages[0].spans[0].recompute; });
  return out;
}

std::string vary(Problem& problem, Random& random) {
  Job& job = problem.job;
  std::string said;
  const auto one_in = [&](int n) { return random() % static_cast<unsigned>(n) == 0; };
  if (one_in(4)) job.overlap = false, said += " --no-overlap";
  if (one_in(5)) job.attention = AttentionKernel::plain, said += " --attention plain";
  if (one_in(6)) job.optimizer = Optimizer::momentum, said += " --optimizer momentum";
  if (one_in(6)) job.graph_capture = true, said += " capture";
  if (one_in(3)) {
    constexpr const char* kFrameworks[] = {"megatron", "fsdp", "eager", "plait", "deepspeed"};
    const char* name = kFrameworks[random() % 5];
    job.framework = find_framework(builtin_catalogue(), name, "framework");
    said += fmt::format(" --framework {}", name);
  }
  if (one_in(4)) {
    job.zero_group = 2 << random() % 3;
    said += fmt::format(" --zero-group {}", job.zero_group);
  }
  if (one_in(8)) job.adapters = true, job.adapter_rank = 16, said += " --lora 16";
  if (one_in(8)) {
    for (std::size_t k = 0; k < problem.model.kinds.size(); ++k)
      problem.model.kinds[k].frozen = k % 2 == 0;
    said += " frozen kinds";
  }
  if (one_in(3)) {
    // Where little is sent bounds are near the plans, and faults of them show.
    for (Node& node : problem.cluster.nodes) node.uplink.bandwidth = BytesPerSecond(1e11);
    said += " 800 Gbps";
  }
  if (one_in(3)) job.precision = Precision::bf16, said += " bf16";
  if (one_in(4)) {
    const double state = 18 * problem.model.parameters() / problem.cluster.device_count();
    job.memory_limit = Bytes((1.3 + static_cast<double>(random() % 100) / 50) * state + 3e9);
    said += fmt::format(" --memory-limit {:.0f}MB", job.memory_limit.value / 1e6);
  }
  return said;
}

void complain(const std::string& what, Seconds bound, Seconds step, const std::string& plan,
              const std::string& arguments) {
  std::puts(fmt::format("FALSE {} bound {:.9g} plan {:.9g} (x {:.7f}) {} :: {}", what, bound.value,
                        step.value, bound / step, plan, arguments)
                .c_str());
  std::fflush(stdout);
}

SearchResult searched(const Problem& problem, const Pins& pins, Effort effort) {
  SearchContext context{problem, {.keep = 1}, {}, {}, {}};
  context.options.pins = pins;
  context.options.effort = effort;
  return run_search(planners().front(), context);
}

struct Known {
  Seconds step;
  std::string plan;
};

// One problem, and a plan of it of which values are pinned.
class Hunt {
 public:
  Hunt(const CostEngine& engine, std::string arguments, Tally& tally)
      : engine_(engine), arguments_(std::move(arguments)), tally_(tally) {}

  // `forced`: pinned in all searches; the plan obeys them.
  void run(const Plan& plan, Seconds step, const Pins& forced, int masks, Random& random) {
    plan_ = plan;
    forced_ = forced;
    dimensions_ = dimensions_of(plan);
    base_ = {step, describe(plan)};
    known_.clear();
    bounds_.clear();
    ask(0);
    for (int i = 0; i < masks; ++i) {
      unsigned mask = 0;
      for (std::size_t d = 0; d < dimensions_.size(); ++d)
        if (random() % 3 == 0) mask |= 1U << d;
      ask(mask);
    }
    for (const auto& [mask, bound] : bounds_) {
      judge(fmt::format("mask {}", mask), bound, base_);
      for (const auto& [more, found] : known_)
        if ((mask & more) == mask && mask != more)
          judge(fmt::format("mask {} of {}", mask, more), bound, found);
      judge_all_plans(mask);
    }
  }

 private:
  Pins pins_of(unsigned mask) const {
    Pins pins = forced_;
    for (std::size_t i = 0; i < dimensions_.size(); ++i)
      if (mask >> i & 1U) dimensions_[i](plan_, pins);
    return pins;
  }

  void ask(unsigned mask) {
    if (bounds_.contains(mask)) return;
    const Pins pins = pins_of(mask);
    if (violation_of(engine_.problem(), pins)) return;
    const SearchResult found = searched(engine_.problem(), pins, Effort::normal);
    bounds_[mask] = found.lower_bound.value_or(Seconds(0));
    if (!found.plans.empty())
      known_[mask] = {found.plans.front().cost.step, describe(found.plans.front().plan)};
  }

  void judge(const std::string& what, Seconds bound, const Known& known) {
    ++tally_.bounds;
    tally_.tight += bound > 0.9 * known.step ? 1 : 0;
    if (bound <= (1 + kRounding) * known.step) return;
    ++tally_.wrong;
    complain(what, bound, known.step, known.plan, arguments_);
  }

  // The bounds of all plans under these pins, asked for more than the best one known.
  void judge_all_plans(unsigned mask) {
    const Problem& problem = engine_.problem();
    std::vector<int> devices(problem.cluster.device_types.size());
    for (const Device& device : problem.cluster.devices) ++devices[device.type];
    Known least = base_;
    for (const auto& [more, found] : known_)
      if ((mask & more) == mask && found.step < least.step) least = found;
    const Pins pins = pins_of(mask);
    judge(fmt::format("cluster bound, mask {}", mask),
          ClusterLowerBound(engine_, pins, {}).step(devices), least);
    if (!CoverBound::is_usable(problem.model)) return;
    const Space space(problem, pins);
    for (const bool fine : {false, true}) {
      if (fine && mask != 0) continue;
      CoverBound bound(engine_, space);
      judge(fmt::format("cover bound, fine {}, mask {}", fine, mask),
            bound.step(
                {0.01 * least.step, 1.3 * least.step}, {.fine = fine},
                [](int, Seconds) { return true; }, [] { return false; }),
            least);
    }
  }

  const CostEngine& engine_;
  std::string arguments_;
  Tally& tally_;
  Plan plan_;
  Pins forced_;
  Known base_;
  std::vector<void (*)(const Plan&, Pins&)> dimensions_;
  std::map<unsigned, Known> known_;     // by which of the dimensions are pinned
  std::map<unsigned, Seconds> bounds_;  // the same
};

void hunt(std::uint64_t seed, int most_devices, std::int64_t evaluations, int masks, Tally& tally) {
  using second_opinion::Sequences;
  auto mixed = second_opinion::mixed_problem(
      seed, most_devices, seed % 4 == 0 ? Sequences::up_to_64k : Sequences::usual);
  Problem& problem = mixed.problem;
  Random random(seed);
  const std::string arguments =
      fmt::format("seed {} {}{}", seed, mixed.arguments, vary(problem, random));
  const CostEngine engine(problem);
  const auto opinion =
      second_opinion::second_opinion(engine, {}, {.seed = seed, .evaluations = evaluations});
  if (!opinion) return;
  ++tally.problems;
  Hunt hunt(engine, arguments, tally);
  hunt.run(opinion->plan, opinion->step, {}, masks, random);
  // The same stages under the schedule for which there are tight bounds.
  Plan plain = opinion->plan;
  if (chunk_count(plain.stages.front()) > 1) return;
  plain.schedule = Schedule::one_f_one_b;
  const Estimate cost = engine.simulate(plain);
  if (!cost.fits || !check_plan(problem, plain).empty()) return;
  hunt.run(plain, cost.step, {.schedule = Schedule::one_f_one_b}, masks, random);
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, int> numbers{{"--seed", 1},
                                     {"--count", 50},
                                     {"--most-devices", 64},
                                     {"--evaluations", 600},
                                     {"--masks", 6}};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!numbers.contains(argv[i])) {
      std::fprintf(stderr, "unknown flag %s\n", argv[i]);
      return 2;
    }
    numbers[argv[i]] = std::atoi(argv[i + 1]);
  }
  Tally tally;
  for (int i = 0; i < numbers["--count"]; ++i)
    hunt(static_cast<std::uint64_t>(numbers["--seed"] + i), numbers["--most-devices"],
         numbers["--evaluations"], numbers["--masks"], tally);
  std::puts(fmt::format("{} problems, {} bounds compared with plans, {} of them within a tenth, {} "
                        "above one",
                        tally.problems, tally.bounds, tally.tight, tally.wrong)
                .c_str());
  return tally.wrong == 0 ? 0 : 1;
}
