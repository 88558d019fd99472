#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan/describe.h"
#include "plan/names.h"
#include "report/plan_tables.h"

namespace plait {
namespace {

// What the words of these plans' descriptions mean, in the order in which they stand there.
class Legend {
 public:
  explicit Legend(const std::vector<RankedPlan>& plans) : plans_(plans) {}

  std::string text() {
    always("pp pipeline stages", "tp and dp tensor-parallel and data-parallel degree");
    where([](const Plan& p) { return p.context > 1; }, "cp GPUs that share a sequence");
    where([](const Plan& p) { return p.expert > 1; }, "ep GPUs that experts are spread over");
    always("m micro-batches in a step", schedules());
    where([](const Plan& p) { return p.zero == ZeroStage::optimizer; },
          "zero1 optimizer state cut over dp");
    where([](const Plan& p) { return p.zero == ZeroStage::gradients; },
          "zero2 optimizer state and gradients cut over dp");
    where([](const Plan& p) { return p.zero == ZeroStage::parameters; },
          "zero3 weights, gradients and optimizer state cut over dp");
    where([](const Plan& p) { return p.sequence_parallel; }, "sp sequence parallel");
    where([](const Plan& p) { return p.offload > 0; },
          "offload part of the optimizer state in host memory");
    where([](const Plan& p) { return recomputes(p); }, "recompute what backward computes again");
    where([](const Plan& p) { return p.stage_count() > 1; },
          "layers= units of each stage, embedding and head included");
    where([](const Plan& p) { return chunk_count(p.stages.front()) > 1; },
          "/ between the chunks of a stage");
    where([](const Plan& p) { return describe(p).find('[') != std::string::npos; },
          "[2]*9 nine stages of 2");
    where([](const Plan& p) { return has_shares(p); }, "shares= samples of each replica");
    return fmt::format("{}. A list has one value a stage. MFU counts causal attention once.",
                       fmt::join(words_, "; "));
  }

 private:
  template <typename... Words>
  void always(Words... words) {
    (words_.emplace_back(words), ...);
  }

  template <typename Holds>
  void where(const Holds& holds, const char* words) {
    if (std::ranges::any_of(plans_, [&](const RankedPlan& plan) { return holds(plan.plan); }))
      words_.emplace_back(words);
  }

  static bool recomputes(const Plan& plan) {
    return std::ranges::any_of(plan.stages, [](const Stage& stage) {
      return std::ranges::any_of(
          stage.spans, [](const Span& span) { return span.recompute != Recompute::none; });
    });
  }

  static bool has_shares(const Plan& plan) {
    return std::ranges::any_of(plan.stages,
                               [](const Stage& stage) { return !stage.shares.empty(); });
  }

  // "1f1b and interleaved: schedules"
  std::string schedules() const {
    std::vector<std::string_view> names;
    for (const RankedPlan& ranked : plans_) {
      const std::string_view name = name_of(ranked.plan.schedule);
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    return fmt::format("{} the {}", fmt::join(names, ", "),
                       names.size() == 1 ? "schedule" : "schedules");
  }

  const std::vector<RankedPlan>& plans_;
  std::vector<std::string> words_;
};

}  // namespace

std::string legend(const std::vector<RankedPlan>& plans, const Style& style) {
  return style.dim(paragraph(Legend(plans).text(), style));
}

}  // namespace plait
