#include "cli/metis_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/peer_rows.h"
#include "cli/plan_report.h"
#include "cli/terminal.h"
#include "cost/engine.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"
#include "io/plan/plan_json.h"
#include "io/profile/import_metis.h"
#include "report/quantities.h"
#include "search/papers/metis_optimum.h"

namespace plait {
namespace {

constexpr std::size_t kMostTypes = 5;  // 120 orders

const std::vector<std::string_view>& cost_models() {
  static const std::vector<std::string_view> kNames{"plait", "metis"};
  return kNames;
}

struct Found {
  MetisOptimum optimum;
  std::vector<RankedPlan> plans;  // the same, as plait predicts them
  Seconds elapsed;
  bool interrupted = false;
};

MetisLimits limits_of(const PlanArguments& arguments) {
  if (!arguments.metis) return {};
  return {arguments.metis->max_tensor, arguments.metis->max_micro_batch};
}

// The first pin that Metis' rows have no words for; "" = none.
std::string pin_beyond(const Pins& pins) {
  if (pins.zero.value_or(ZeroStage::off) != ZeroStage::off) return "--zero";
  if (pins.recompute.value_or(Recompute::none) != Recompute::none) return "--recompute";
  if (pins.schedule.value_or(Schedule::one_f_one_b) != Schedule::one_f_one_b) return "--schedule";
  if (pins.chunks.value_or(1) > 1) return "--chunks";
  if (pins.context.value_or(1) > 1) return "--cp";
  if (pins.expert.value_or(1) > 1) return "--ep";
  return pins.sequence_parallel.value_or(false) ? "--sp" : "";
}

void refuse_problem(const PlanArguments& arguments, const Problem& problem) {
  const std::string flag = "--cost-model";
  if (arguments.planner != "auto")
    throw InputError(flag, "metis has a search of its own; leave --planner out");
  if (arguments.wishes.need_prices())
    throw InputError(flag, "metis knows nothing of money; leave limits and objectives out");
  if (arguments.profile.empty() || !is_metis_profile(arguments.profile))
    throw InputError(flag, "metis needs --profile with a directory of Metis' measurements");
  if (problem.cluster.device_types.size() > kMostTypes)
    throw InputError(
        flag, fmt::format("metis puts device types in every order: at most {} types", kMostTypes));
  if (const std::string pin = pin_beyond(arguments.search.pins); !pin.empty())
    throw InputError(pin, "is nothing that Metis' formula knows (--cost-model metis)");
}

Found search(const Problem& problem, const MetisFormula& formula, const SearchOptions& options) {
  Interrupt interrupt;
  const SearchContext context{problem, options, interrupt.token(), {}, {}};
  const auto begin = std::chrono::steady_clock::now();
  Found found;
  found.optimum = search_metis_optimum(formula, context);
  found.elapsed =
      Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  found.interrupted = interrupt.happened();
  const CostEngine engine(problem);
  for (const MetisRanked& ranked : found.optimum.plans)
    found.plans.push_back({ranked.plan, engine.simulate(ranked.plan)});
  return found;
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

std::string as_json(const Problem& problem, const Found& found,
                    const std::vector<std::string>& warnings) {
  std::vector<std::string> plans;
  for (std::size_t i = 0; i < found.plans.size(); ++i)
    plans.push_back(ranked_plan_object(problem, found.plans[i])
                        .number("metis_cost_ms", 1e3 * found.optimum.plans[i].cost.total().value)
                        .json("metis_terms_ms", terms_json(found.optimum.plans[i].cost))
                        .str());
  std::vector<std::string> sentences;
  for (const std::string& warning : warnings) sentences.push_back(json_text(warning));
  return lay_out_json(JsonObject()
                          .json("plans", json_list(plans))
                          .text("cost_model", "metis")
                          .number("evaluations", static_cast<double>(found.optimum.evaluations))
                          .number("search_s", found.elapsed.value)
                          .boolean("cut_short", found.optimum.cut_short)
                          .json("warnings", json_list(sentences))
                          .text("model", problem.model.name)
                          .text("cluster", problem.cluster.name)
                          .str());
}

std::string as_text(const Problem& problem, const Found& found) {
  const Style style = style_of(stdout);
  Table table({{"#"}, {"by Metis"}, {"by plait"}, {"", Align::left}, {"plan", Align::left}});
  for (std::size_t i = 0; i < found.plans.size(); ++i)
    table.row({std::to_string(i + 1), in_words(found.optimum.plans[i].cost.total()),
               in_words(found.plans[i].cost.step),
               found.plans[i].cost.fits ? "" : "too large, says plait",
               short_description(found.plans[i].plan)});
  const std::string verdict = fmt::format(
      "{} {} stages costed in {}.",
      found.optimum.cut_short ? "Cut short: the best so far."
                              : "No plan that Metis' rows can say has a shorter step by its "
                                "formula and fits by its profile, which has one micro-batch in "
                                "flight.",
      grouped(static_cast<double>(found.optimum.evaluations)), in_words(found.elapsed));
  const RankedPlan& best = found.plans.front();
  return problem_heading(problem, style) + "\n" + table.str(style) + "\n" +
         paragraph(verdict, style) + "\n" +
         style.bold("The best plan, stage by stage, as plait predicts it") + "\n" +
         stage_table(problem, best.plan, best.cost, style);
}

int print_rows(const Problem& problem, const Found& found) {
  const PeerRows rows = metis_rows(problem, found.optimum.plans);
  for (const std::string& sentence : rows.left_out) warn(sentence);
  print(rows.text);
  return rows.written > 0 ? kDone : kNothingFits;
}

}  // namespace

Flag cost_model_flag(std::string& into) {
  return {.name = "--cost-model",
          .value = "C",
          .help =
              "whose step time is to be the least: plait's, or metis for the formula of Metis' "
              "program on its profile (plait; metis for its --format)",
          .set =
              [&into](const std::string& flag, const std::string& text) {
                if (std::ranges::find(cost_models(), text) == cost_models().end())
                  refuse_choice(flag, text, cost_models());
                into = text;
              },
          .choices = as_strings(cost_models())};
}

bool is_costed_by_metis(const PlanArguments& arguments, const std::string& format,
                        const std::string& cost_model) {
  if (!cost_model.empty()) return cost_model == "metis";
  return format == "metis" && arguments.planner == "auto" && !arguments.wishes.need_prices() &&
         pin_beyond(arguments.search.pins).empty() && !arguments.profile.empty() &&
         is_metis_profile(arguments.profile);
}

void leave_out_unmeasured(const PlanArguments& arguments, const Problem& problem,
                          std::span<const RankedPlan> plans, PeerRows& rows) {
  if (arguments.profile.empty() || !is_metis_profile(arguments.profile)) return;
  const MetisTable table = load_metis_table(arguments.profile, problem, limits_of(arguments));
  const MetisFormula formula(problem, table);
  std::vector<RankedPlan> measured;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Plan& plan = plans[i].plan;
    const auto is_measured = [&](const Stage& stage) {
      const Span& span = stage.spans.front();
      return formula.cut(stage.devices, span.data, span.tensor, plan.micro_batches).has_value();
    };
    if (std::ranges::all_of(plan.stages, is_measured))
      measured.push_back(plans[i]);
    else
      rows.left_out.push_back(
          fmt::format("plan {} has no row in the form of metis: the profile lacks a tensor degree "
                      "or batch of it",
                      i + 1));
  }
  const PeerRows kept = peer_rows("metis", problem, measured);
  rows.text = kept.text;
  rows.written = kept.written;
}

int plan_by_metis_formula(PlanArguments arguments, LoadedProblem loaded,
                          const std::string& format) {
  const Problem& problem = loaded.problem;
  refuse_problem(arguments, problem);
  if (std::string note = resolve_pins(arguments, problem.model); !note.empty())
    loaded.warnings.push_back(std::move(note));
  const MetisTable table = load_metis_table(arguments.profile, problem, limits_of(arguments));
  if (!arguments.json)
    for (const std::string& warning : loaded.warnings) warn(warning);
  const Found found = search(problem, MetisFormula(problem, table), arguments.search);
  if (found.plans.empty()) {
    if (arguments.json) print(as_json(problem, found, loaded.warnings));
    complain(found.optimum.cut_short
                 ? "cut short before any plan was found; give more --time-limit"
                 : "no plan that Metis' rows can say fits the memory that its profile asks for, "
                   "with the tensor degrees and batches that were measured; --cost-model plait "
                   "has more kinds of plan");
    return found.interrupted ? kInterrupted : kNothingFits;
  }
  if (!arguments.output.empty())
    write_text_file(arguments.output,
                    plan_file_to_json(problem, found.plans.front().plan, found.plans.front().cost));
  if (!format.empty() && format != "metis") {
    const PeerRows rows = peer_rows(format, problem, found.plans);
    for (const std::string& sentence : rows.left_out) warn(sentence);
    print(rows.text);
    return rows.written > 0 ? kDone : kNothingFits;
  }
  if (!format.empty()) return print_rows(problem, found);
  print(arguments.json ? as_json(problem, found, loaded.warnings) : as_text(problem, found));
  return kDone;
}

}  // namespace plait
