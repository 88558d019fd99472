#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "app/plan/plan.h"
#include "app/request/prediction_error.h"
#include "app/request/ranked_plan_json.h"
#include "cost/engine.h"
#include "io/format/json_writer.h"
#include "io/format/unit_factors.h"
#include "plan/describe.h"
#include "report/plan_tables.h"
#include "report/quantities.h"
#include "report/search_passes.h"

namespace plait {
namespace {

// "300,000 steps take 12.3 days and cost $20,312."
std::string in_words(const Training& training) {
  std::string out = fmt::format("{} {} {}", counted(training.steps, "step"),
                                training.steps == 1 ? "takes" : "take", long_time(training.time));
  if (training.price > Usd(0))
    out +=
        fmt::format(" and {} {}", training.steps == 1 ? "costs" : "cost", in_words(training.price));
  if (training.goodput < 1)
    out += fmt::format(", of which {} is spent in steps that count", percent(training.goodput));
  return out + ".";
}

std::string terms_json(const MetisTerms& terms) {
  return JsonObject()
      .number("execution", 1e3 * terms.execution.value)
      .number("sync", 1e3 * terms.sync.value)
      .number("update", 1e3 * terms.update.value)
      .number("gradients", 1e3 * terms.gradients.value)
      .number("sends", 1e3 * terms.sends.value)
      .number("batches", 1e3 * terms.batches.value)
      .str();
}

std::string terms_json(const AcesoCost& cost);

std::vector<std::string> plans_json(const PlanAnswer& answer) {
  std::vector<std::string> plans;
  for (std::size_t i = 0; i < answer.result.plans.size(); ++i) {
    JsonObject plan = ranked_plan_object(answer.problem, answer.result.plans[i], answer.length);
    plan.number("chance_of_order",
                order_after(answer.result.plans.front(), answer.result.plans[i]));
    if (answer.metis_costs)
      plan.number("metis_cost_ms", 1e3 * (*answer.metis_costs)[i].total().value)
          .json("metis_terms_ms", terms_json((*answer.metis_costs)[i]));
    if (answer.aceso_costs) {
      const AcesoCost& cost = (*answer.aceso_costs)[i];
      plan.number("aceso_cost_ms", 1e3 * cost.step.value)
          .number("aceso_memory_MiB", cost.memory.value / kMebibyte)
          .json("aceso_stages", terms_json(cost));
    }
    plans.push_back(plan.str());
  }
  return plans;
}

std::string terms_json(const AcesoCost& cost) {
  std::vector<std::string> stages;
  for (std::size_t s = 0; s < cost.stages.size(); ++s) {
    const AcesoStageCost& own = cost.stages[s];
    stages.push_back(JsonObject()
                         .number("step_ms", 1e3 * cost.times[s].value)
                         .number("forward_us", 1e6 * own.forward.value)
                         .number("backward_us", 1e6 * own.backward.value)
                         .number("recompute_us", 1e6 * own.recomputed.value)
                         .number("in_us", 1e6 * own.in.value)
                         .number("out_us", 1e6 * own.out.value)
                         .number("reshard_us", 1e6 * own.reshard.value)
                         .number("weights_MiB", own.weights.value / kMebibyte)
                         .number("gradients_MiB", own.gradients.value / kMebibyte)
                         .number("optimizer_MiB", own.optimizer.value / kMebibyte)
                         .number("activations_MiB", own.activations.value / kMebibyte)
                         .number("peak_MiB", own.peak.value / kMebibyte)
                         .number("reserved_MiB", own.reserved.value / kMebibyte)
                         .number("memory_MiB", own.memory().value / kMebibyte)
                         .str());
  }
  return json_list(stages);
}

int idle_devices(const PlanAnswer& answer) {
  int idle = answer.problem.cluster.device_count();
  for (const Stage& stage : answer.result.plans.front().plan.stages)
    idle -= static_cast<int>(stage.devices.size());
  return idle;
}

// What is proven of the best plan, among all plans that were free to be chosen.
std::string proof_in_words(const PlanAnswer& answer) {
  const std::optional<double> gap = answer.gap();
  if (!gap) return "How much faster a plan could be is not proven. ";
  if (answer.result.bounds_every_plan)
    return fmt::format("No plan that was free to choose is more than {} faster. ", percent(*gap));
  if (*gap < 5e-5) return "Nothing in this space is faster. ";
  if (*gap < 5e-4) return "No plan in this space is faster by 0.1 %. ";
  return fmt::format("Within {} of the fastest plan possible in this space. ", percent(*gap));
}

std::string verdict(const PlanAnswer& answer) {
  std::string out;
  if (const int idle = idle_devices(answer); idle > 0)
    out += fmt::format("The best plan leaves {} of the {} devices idle. ", grouped(idle),
                       grouped(answer.problem.cluster.device_count()));
  out += proof_in_words(answer);
  if (answer.mixes > 0)
    out += fmt::format("Chosen from {} ways to leave nodes out. ",
                       grouped(static_cast<double>(answer.mixes)));
  if (answer.result.cut_short)
    out += answer.interrupted ? "Cut short by Ctrl-C or another signal: the best so far. "
                              : "Cut short by the time limit: the best so far. ";
  return out + fmt::format("{} costed in {}.",
                           counted(static_cast<double>(answer.result.evaluations), "plan"),
                           in_words(answer.elapsed));
}

// "plait's own runtime: 21.40 s with pp2 tp4,1 .. (`framework` plait)."
std::string in_words(const OtherWay& way, const PlanAnswer& answer) {
  int devices = 0;
  for (const Stage& stage : way.plan.plan.stages) devices += static_cast<int>(stage.devices.size());
  const bool idle = devices < answer.problem.cluster.device_count();
  return fmt::format("{}: {}{} with {} ({}).", way.where, in_words(way.plan.cost.step),
                     idle ? fmt::format(" on {} devices", grouped(devices)) : "",
                     short_description(way.plan.plan), way.request);
}

// "The best plan trains 1,264 tokens/s on each of 64 devices; a million tokens cost $1.51."
std::string rates_in_words(const Problem& problem, const RankedPlan& best) {
  if (problem.model.sequence_length <= 1) return "";
  int devices = 0;
  for (const Stage& stage : best.plan.stages) devices += static_cast<int>(stage.devices.size());
  const double rate = tokens_per_second(problem, best.cost.step);
  std::vector<std::string> parts;
  if (devices > 1)
    parts.push_back(fmt::format("{} tokens/s on each of {} devices",
                                grouped(std::round(rate / devices)), grouped(devices)));
  if (const Usd price = price_of_step(problem, best.plan, best.cost.step); price > Usd(0))
    parts.push_back(fmt::format("a million tokens for {}",
                                in_words(price * (1e6 / (rate * best.cost.step.value)))));
  if (parts.empty()) return "";
  return fmt::format("The best plan trains {}.", fmt::join(parts, ", and "));
}

// How far off the predictions may be, and what that means for the order of the plans.
std::string errors_in_words(const PlanAnswer& answer) {
  const RankedPlan& best = answer.result.plans.front();
  std::string out = step_band_in_words(answer.problem, best);
  for (const std::string& more :
       {ranking_in_words(answer.result.plans), memory_doubt_in_words(answer.problem, best)})
    if (!more.empty()) out += " " + more;
  return out;
}

std::string metis_text(const PlanAnswer& answer, const Style& style) {
  const std::vector<RankedPlan>& plans = answer.result.plans;
  Table table({{"#"}, {"by Metis"}, {"by plait"}, {"", Align::left}, {"plan", Align::left}});
  for (std::size_t i = 0; i < plans.size(); ++i)
    table.row({std::to_string(i + 1), in_words((*answer.metis_costs)[i].total()),
               in_words(plans[i].cost.step), plans[i].cost.fits ? "" : "too large, says plait",
               short_description(plans[i].plan)});
  const std::string words = fmt::format(
      "{} {} stages costed in {}.",
      answer.result.cut_short ? "Cut short: the best so far."
                              : "No plan that Metis' rows can say has a shorter step by its "
                                "formula and fits by its profile, which has one micro-batch in "
                                "flight.",
      grouped(static_cast<double>(answer.result.evaluations)), in_words(answer.elapsed));
  return problem_heading(answer.problem, style, answer.options.target.name) + "\n" +
         table.str(style) + "\n" + paragraph(words, style) + "\n" +
         style.bold("The best plan, stage by stage, as plait predicts it") + "\n" +
         stage_table(answer.problem, plans.front().plan, plans.front().cost, style);
}

std::string aceso_text(const PlanAnswer& answer, const Style& style) {
  const std::vector<RankedPlan>& plans = answer.result.plans;
  Table table(
      {{"#"}, {"by Aceso"}, {"memory"}, {"by plait"}, {"", Align::left}, {"plan", Align::left}});
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const AcesoCost& cost = (*answer.aceso_costs)[i];
    table.row({std::to_string(i + 1), in_words(cost.step), in_words(cost.memory),
               in_words(plans[i].cost.step), plans[i].cost.fits ? "" : "too large, says plait",
               short_description(plans[i].plan)});
  }
  const std::string words = fmt::format(
      "{} {} stages costed in {}.",
      answer.result.cut_short ? "Cut short: the best so far."
                              : "The fastest pipelines by Aceso's formula, for each size of "
                                "micro-batch that its database has.",
      grouped(static_cast<double>(answer.result.evaluations)), in_words(answer.elapsed));
  return problem_heading(answer.problem, style, answer.options.target.name) + "\n" +
         table.str(style) + "\n" + paragraph(words, style) + "\n" +
         style.bold("The best plan, stage by stage, as plait predicts it") + "\n" +
         stage_table(answer.problem, plans.front().plan, plans.front().cost, style);
}

}  // namespace

std::string reason(const PlanAnswer& answer) {
  const bool by_metis = answer.metis_costs.has_value();
  if (!answer.missed.empty()) return answer.missed;
  if (answer.no_plan) return in_words(*answer.no_plan);
  if (!answer.found() && answer.result.cut_short)
    return "cut short before any plan was found; give more `time_limit`";
  if (!answer.found() && answer.aceso_costs) return answer.result.reason;
  if (!answer.found())
    return "no plan that Metis' rows can say fits the memory that its profile asks for, with the "
           "tensor degrees and batches that were measured; `cost_model` plait has more kinds of "
           "plan";
  if (!answer.exported || answer.exported->written > 0 || by_metis || answer.aceso_costs) return "";
  const std::string& format = answer.exported->format;
  const std::string none = fmt::format("none of the {} plans can be written for {}; ",
                                       answer.result.plans.size(), format);
  const auto names = planner_names();
  if (std::ranges::find(names, format) == names.end()) return none + "a larger `keep` shows more";
  return none + fmt::format("`planner` {} searches for plans that can, a larger `keep` shows more",
                            format);
}

namespace {

std::string passes_json(const std::vector<PassReport>& passes) {
  const auto time = [](Seconds value) {
    return std::isfinite(value.value) && value > Seconds(0) ? json_number(value.value) : "null";
  };
  std::vector<std::string> items;
  for (const PassReport& pass : passes)
    items.push_back(JsonObject()
                        .text("pass", pass.name)
                        .number("elapsed_s", pass.elapsed.value)
                        .number("evaluations", static_cast<double>(pass.evaluations))
                        .json("step_s", time(pass.best))
                        .json("lower_bound_s", time(pass.lower_bound))
                        .str());
  return json_list(items);
}

}  // namespace

std::string to_json(const PlanAnswer& answer) {
  const std::optional<Seconds>& bound = answer.result.lower_bound;
  const bool by_metis = answer.metis_costs.has_value() || answer.aceso_costs.has_value();
  JsonObject object;
  object.json("plans", json_list(plans_json(answer)));
  if (by_metis)
    object.text("cost_model", answer.aceso_costs ? "aceso" : "metis");
  else
    object.json("lower_bound_s", bound ? json_number(bound->value) : "null")
        .json("gap", number_or_null(answer.gap()));
  object.number("evaluations", static_cast<double>(answer.result.evaluations))
      .number("search_s", answer.elapsed.value)
      .boolean("cut_short", answer.result.cut_short);
  std::vector<std::string> ways;
  for (const OtherWay& way : answer.other_ways)
    ways.push_back(JsonObject()
                       .text("where", way.where)
                       .text("request", way.request)
                       .number("step_s", way.plan.cost.step.value)
                       .text("describe", describe(way.plan.plan))
                       .str());
  if (!by_metis)
    object.text("runs_on", answer.options.target.name).json("other_ways", json_list(ways));
  if (answer.explain_search) object.json("passes", passes_json(answer.result.passes));
  if (!answer.remarks.empty()) object.json("remarks", sentences_json(answer.remarks));
  if (!answer.found() && !answer.metis_costs) object.text("reason", reason(answer));
  if (answer.no_plan && answer.no_plan->nearest)
    object.json("nearest", ranked_plan_json(answer.problem, *answer.no_plan->nearest));
  return lay_out_json(object.json("warnings", sentences_json(answer.warnings))
                          .text("model", answer.problem.model.name)
                          .text("cluster", answer.problem.cluster.name)
                          .str());
}

std::string nearest_text(const PlanAnswer& answer, const Style& style) {
  if (!answer.no_plan || !answer.no_plan->nearest) return "";
  const RankedPlan& nearest = *answer.no_plan->nearest;
  return problem_heading(answer.problem, style, answer.options.target.name) + "\n" +
         paragraph("The nearest plan does not fit: " + short_description(nearest.plan), style, 2) +
         style.bold("Memory") + " of the device that has least to spare, GiB\n" +
         memory_table(nearest.cost, style);
}

std::string as_text(const PlanAnswer& answer, const Style& style) {
  if (answer.metis_costs) return metis_text(answer, style);
  if (answer.aceso_costs) return aceso_text(answer, style);
  const Problem& problem = answer.problem;
  const RankedPlan& best = answer.result.plans.front();
  std::string out = problem_heading(problem, style, answer.options.target.name) + "\n";
  out += plan_table(problem, answer.result.plans, style, answer.length);
  out += legend(answer.result.plans, style) + "\n";
  if (answer.length)
    out += in_words(
               training_of(*answer.length, best.cost.step, price_of(problem.cluster, best.plan))) +
           "\n";
  out += paragraph(verdict(answer), style);
  out += paragraph(errors_in_words(answer), style);
  if (const std::string rates = rates_in_words(problem, best); !rates.empty())
    out += paragraph(rates, style);
  for (const std::string& remark : answer.remarks) out += paragraph(remark, style, 2);
  for (const OtherWay& way : answer.other_ways) out += paragraph(in_words(way, answer), style, 2);
  out += "\n";
  if (answer.explain_search)
    out += style.bold("The search, pass by pass") + "\n" +
           search_passes_table(answer.result.passes, style) + "\n";
  out += style.bold("The best plan, stage by stage") +
         (best.plan.micro_batches == 1 ? "\n"
                                       : fmt::format(" (times of one of {} micro-batches)\n",
                                                     grouped(best.plan.micro_batches)));
  return out + stage_table(problem, best.plan, best.cost, style);
}

}  // namespace plait
