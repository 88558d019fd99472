#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/saved/explain.h"
#include "io/format/json_writer.h"
#include "plan/describe.h"
#include "report/plan_tables.h"
#include "report/quantities.h"
#include "report/summary.h"

namespace plait {
namespace {

std::string pace(const Explanation& e) {
  const auto& [plan, cost] = e.subject;
  const int slowest = slowest_stage(cost);
  const StageCost& stage = cost.stages[slowest];
  const std::string work = fmt::format(
      "{} forward and {} backward for each of {}", in_words(stage.forward_total()),
      in_words(stage.backward_total()),
      plan.micro_batches == 1 ? "1 micro-batch" : grouped(plan.micro_batches) + " micro-batches");
  if (plan.stage_count() == 1) return fmt::format("There is one stage: {}.", work);
  const auto total = [](const StageCost& s) { return s.forward_total() + s.backward_total(); };
  const StageCost& fastest = *std::ranges::min_element(cost.stages, {}, total);
  return fmt::format(
      "Stage {} of {} ({}: {}) sets the pace with {}; the fastest stage needs {} less.",
      slowest + 1, plan.stage_count(), types_of(e.problem.cluster, plan.stages[slowest].devices),
      units_in_words(e.problem.model, plan.stages[slowest]), work,
      percent(1 - total(fastest) / total(stage)));
}

std::string time_sentence(const Explanation& e) {
  const StepShares shares = shares_of(e.subject);
  const Seconds step = e.subject.cost.step;
  std::vector<std::string> parts{fmt::format("{} computing", percent(shares.compute / step))};
  const auto add = [&](Seconds time, const char* what) {
    if (time / step >= 0.0005) parts.push_back(fmt::format("{} {}", percent(time / step), what));
  };
  add(shares.recompute, "recomputing activations");
  add(shares.communication, "in communication inside the stage");
  add(shares.bubble, "waiting for other stages (the bubble)");
  Seconds tied;
  for (const StageCost& stage : e.subject.cost.stages) tied = std::max(tied, stage.tied_sync);
  add(shares.after_pipeline,
      tied > 0.5 * shares.after_pipeline
          ? "at the end, most of it to sum the gradients of the table that embedding and head share"
          : "in gradient sync and optimizer at the end");
  return fmt::format("Of the step, that stage spends {}.", fmt::join(parts, ", "));
}

std::string memory_sentence(const Explanation& e) {
  const Estimate& cost = e.subject.cost;
  const int tightest = tightest_stage(cost);
  const StageCost& stage = cost.stages[tightest];
  if (!cost.fits) return fmt::format("It does not fit: {}.", shortage(e.problem, e.subject));
  return fmt::format(
      "Memory is tightest on stage {}: {} of {}, of which {} are activations and {} weights, "
      "gradients and optimizer state; {} to spare.",
      tightest + 1, in_words(stage.peak_memory()), in_words(stage.capacity),
      in_words(stage.activations),
      in_words(stage.weights + stage.gradients + stage.optimizer_state), in_words(stage.spare()));
}

std::string alternatives_table(const Explanation& e, const Style& style) {
  Table table(
      {{"step"}, {"against this"}, {"GiB used", Align::right, 1}, {"one change", Align::left}});
  for (const auto& [words, plan] : e.alternatives) {
    const StageCost& tightest = plan.cost.stages[tightest_stage(plan.cost)];
    table.row({in_words(plan.cost.step),
               change(plan.cost.step / e.subject.cost.step - 1, "slower", "faster"),
               fmt::format("{} / {}", in_gibibytes(tightest.peak_memory()),
                           in_gibibytes(tightest.capacity)),
               plan.cost.fits ? words : words + " (does not fit)"});
  }
  return table.str(style);
}

std::string search_sentence(const Explanation& e) {
  const std::string limited = e.search.cut_short ? " (the search was cut short)" : "";
  if (e.search.plans.empty())
    return "A search without pins finds nothing that fits" + limited + ".";
  const RankedPlan& best = e.search.plans.front();
  const double behind = e.subject.cost.step / best.cost.step - 1;
  if (behind > 5e-4)
    return fmt::format("The search knows a plan that takes {} less time{}: {}.",
                       percent(1 - best.cost.step / e.subject.cost.step), limited,
                       short_description(best.plan));
  std::string out = fmt::format("The search knows nothing faster{}.", limited);
  const auto runner_up = std::ranges::find_if(
      e.search.plans, [&](const RankedPlan& other) { return other.plan != e.subject.plan; });
  if (runner_up == e.search.plans.end()) return out;
  const StepShares mine = shares_of(e.subject);
  const StepShares theirs = shares_of(*runner_up);
  const auto signed_words = [](Seconds time) {
    return (time > Seconds(0) ? "+" : "") + in_words(time);
  };
  return out + fmt::format(
                   " The runner-up, {}, loses {} a step: compute and recompute {}, "
                   "communication {}, bubble {}, the end {}.",
                   short_description(runner_up->plan),
                   in_words(runner_up->cost.step - e.subject.cost.step),
                   signed_words(theirs.compute + theirs.recompute - mine.compute - mine.recompute),
                   signed_words(theirs.communication - mine.communication),
                   signed_words(theirs.bubble - mine.bubble),
                   signed_words(theirs.after_pipeline - mine.after_pipeline));
}

}  // namespace

std::string as_text(const Explanation& e, const Style& style) {
  std::string out = problem_heading(e.problem, style, e.target) + "\n";
  out += paragraph(short_description(e.subject.plan), style, 2) + "\n";
  out += paragraph(fmt::format("A step takes {}.", in_words(e.subject.cost.step)) + " " + pace(e) +
                       " " + time_sentence(e),
                   style) +
         "\n";
  out += paragraph(memory_sentence(e), style) + "\n";
  out += paragraph(search_sentence(e), style);
  if (!e.alternatives.empty())
    out += "\n" + style.bold("What a change would do") + "\n" + alternatives_table(e, style);
  return out;
}

std::string to_json(const Explanation& e) {
  const StepShares shares = shares_of(e.subject);
  const Seconds step = e.subject.cost.step;
  std::vector<std::string> alternatives;
  for (const auto& [words, plan] : e.alternatives)
    alternatives.push_back(JsonObject()
                               .text("change", words)
                               .number("step_s", plan.cost.step.value)
                               .boolean("fits", plan.cost.fits)
                               .text("describe", describe(plan.plan))
                               .str());
  JsonObject object;
  object.text("describe", describe(e.subject.plan))
      .number("step_s", step.value)
      .boolean("fits", e.subject.cost.fits)
      .number("slowest_stage", slowest_stage(e.subject.cost))
      .number("tightest_stage", tightest_stage(e.subject.cost))
      .json("shares", JsonObject()
                          .number("compute", shares.compute / step)
                          .number("recompute", shares.recompute / step)
                          .number("communication", shares.communication / step)
                          .number("bubble", shares.bubble / step)
                          .number("tail", shares.after_pipeline / step)
                          .str())
      .json("alternatives", json_list(alternatives));
  if (!e.search.plans.empty())
    object.json("best", JsonObject()
                            .text("describe", describe(e.search.plans.front().plan))
                            .number("step_s", e.search.plans.front().cost.step.value)
                            .str());
  if (!e.made_by.empty()) object.text("made_by", e.made_by);
  return lay_out_json(object.str());
}

}  // namespace plait
