#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/metis_plans.h"
#include "cli/money.h"
#include "cli/nothing_fits.h"
#include "cli/peer_rows.h"
#include "cli/plan_arguments.h"
#include "cli/plan_report.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"
#include "io/plan/plan_json.h"
#include "report/quantities.h"
#include "report/search_passes.h"

namespace plait {
namespace {

// A search as it went: its result, and what only the clock knows.
struct Outcome {
  SearchResult result;
  std::optional<double> steps;  // of the whole training
  std::string missed;           // by how much limits of time and money are missed; "" = not
  std::int64_t mixes = 0;       // of nodes that were compared; 0 = all nodes were used at will
  Seconds elapsed;
  bool interrupted = false;

  std::optional<double> gap() const {
    if (!result.lower_bound || result.plans.empty()) return std::nullopt;
    return std::max(0.0, result.plans.front().cost.step / *result.lower_bound - 1);
  }
};

// The plans that are best in time and money, over all ways to leave nodes out.
void search_mixes(const SearchContext& context, const PlanArguments& arguments, Outcome& outcome) {
  ParetoResult found =
      pareto_front(named_planner(arguments.planner), context, mix_kinds(context.problem.cluster));
  outcome.mixes = found.mixes;
  outcome.result.evaluations = found.evaluations;
  outcome.result.cut_short = found.cut_short;
  outcome.result.nearest = std::move(found.nearest);
  for (MixPoint& point : wished_for(arguments.wishes, context.problem, found.front, outcome.missed))
    if (static_cast<int>(outcome.result.plans.size()) < context.options.keep)
      outcome.result.plans.push_back(std::move(point.best));
}

Outcome search(const Problem& problem, const PlanArguments& arguments) {
  Interrupt interrupt;
  Progress progress;
  SearchContext context{
      .problem = problem,
      .options = arguments.search,
      .stop = interrupt.token(),
      .on_improvement = [&](const RankedPlan& best) { progress.improved(best.cost.step); },
      .on_progress = [&](double fraction) { progress.advanced(fraction); }};
  const auto begin = std::chrono::steady_clock::now();
  Outcome outcome;
  outcome.steps = steps_of(arguments.wishes, problem);
  if (arguments.wishes.need_prices())
    search_mixes(context, arguments, outcome);
  else
    outcome.result = run_search(named_planner(arguments.planner), context);
  outcome.elapsed =
      Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  outcome.interrupted = interrupt.happened();
  return outcome;
}

std::string passes_json(const std::vector<PassReport>& passes) {
  std::vector<std::string> items;
  for (const PassReport& pass : passes) {
    const auto finite = [](Seconds time) {
      return std::isfinite(time.value) && time > Seconds(0) ? json_number(time.value) : "null";
    };
    items.push_back(JsonObject()
                        .text("pass", pass.name)
                        .number("elapsed_s", pass.elapsed.value)
                        .number("evaluations", static_cast<double>(pass.evaluations))
                        .json("step_s", finite(pass.best))
                        .json("lower_bound_s", finite(pass.lower_bound))
                        .str());
  }
  return json_list(items);
}

std::string as_json(const Problem& problem, const Outcome& outcome,
                    const std::vector<std::string>& warnings, const std::string& reason,
                    bool explain_search) {
  std::vector<std::string> plans;
  for (const RankedPlan& ranked : outcome.result.plans)
    plans.push_back(ranked_plan_json(problem, ranked, outcome.steps));
  std::vector<std::string> sentences;
  for (const std::string& warning : warnings) sentences.push_back(json_text(warning));
  const auto optional_number = [](const std::optional<double>& value) {
    return value ? json_number(*value) : std::string("null");
  };
  const std::optional<Seconds>& bound = outcome.result.lower_bound;
  JsonObject object;
  object.json("plans", json_list(plans))
      .json("lower_bound_s", bound ? json_number(bound->value) : "null")
      .json("gap", optional_number(outcome.gap()))
      .number("evaluations", static_cast<double>(outcome.result.evaluations))
      .number("search_s", outcome.elapsed.value)
      .boolean("cut_short", outcome.result.cut_short);
  if (explain_search) object.json("passes", passes_json(outcome.result.passes));
  if (plans.empty()) object.text("reason", reason);
  return lay_out_json(object.json("warnings", json_list(sentences))
                          .text("model", problem.model.name)
                          .text("cluster", problem.cluster.name)
                          .str());
}

std::string verdict(const Problem& problem, const Outcome& outcome, bool pinned) {
  std::string out;
  const Plan& best = outcome.result.plans.front().plan;
  int idle = problem.cluster.device_count();
  for (const Stage& stage : best.stages) idle -= static_cast<int>(stage.devices.size());
  if (idle > 0)
    out += fmt::format("The best plan leaves {} of the {} devices idle. ", grouped(idle),
                       grouped(problem.cluster.device_count()));
  // The bound is one on plans under 1F1B, whose best are then tried under other schedules.
  const bool rescheduled = !pinned && best.schedule != Schedule::one_f_one_b;
  const char* where = rescheduled ? "under 1F1B" : "in this space";
  if (const auto gap = outcome.gap())
    out += *gap < 5e-5
               ? fmt::format("Nothing {} is faster. ", where)
               : fmt::format("Within {} of the fastest plan possible {}. ", percent(*gap), where);
  if (outcome.mixes > 0)
    out += fmt::format("Chosen from {} ways to leave nodes out. ",
                       grouped(static_cast<double>(outcome.mixes)));
  if (outcome.result.cut_short)
    out += outcome.interrupted ? "Cut short by Ctrl-C: the best so far. "
                               : "Cut short by the time limit: the best so far. ";
  return out + fmt::format("{} plans costed in {}.",
                           grouped(static_cast<double>(outcome.result.evaluations)),
                           in_words(outcome.elapsed));
}

std::string as_text(const Problem& problem, const Outcome& outcome, bool pinned,
                    bool explain_search) {
  const Style style = style_of(stdout);
  const RankedPlan& best = outcome.result.plans.front();
  std::string out = problem_heading(problem, style) + "\n";
  out += plan_table(problem, outcome.result.plans, style, outcome.steps) + "\n";
  if (outcome.steps)
    out += training_in_words(
               training_of(*outcome.steps, best.cost.step, price_of(problem.cluster, best.plan))) +
           "\n";
  out += paragraph(verdict(problem, outcome, pinned), style) + "\n";
  if (explain_search)
    out += style.bold("The search, pass by pass") + "\n" +
           search_passes_table(outcome.result.passes, style) + "\n";
  out += style.bold("The best plan, stage by stage") +
         (best.plan.micro_batches == 1 ? "\n"
                                       : fmt::format(" (times of one of {} micro-batches)\n",
                                                     grouped(best.plan.micro_batches)));
  return out + stage_table(problem, best.plan, best.cost, style);
}

// Rows for another planner's program; plans that it cannot express are named on stderr.
int print_rows(const std::string& format, const Problem& problem, const PlanArguments& arguments,
               const Outcome& outcome) {
  PeerRows rows = peer_rows(format, problem, outcome.result.plans);
  if (format == "metis") leave_out_unmeasured(arguments, problem, outcome.result.plans, rows);
  for (const std::string& sentence : rows.left_out) warn(sentence);
  print(rows.text);
  if (rows.written > 0) return kDone;
  complain(fmt::format(
      "none of the {} plans has a row in the form of {}; --planner {} searches for those "
      "that have, a larger --top shows more",
      outcome.result.plans.size(), format, format));
  return kNothingFits;
}

// What no row can say is not searched, unless it is asked for.
void pin_for_rows(Pins& pins) {
  if (!pins.zero) pins.zero = ZeroStage::off;
  if (!pins.recompute) pins.recompute = Recompute::none;
  if (!pins.schedule) pins.schedule = Schedule::one_f_one_b;
  if (!pins.context) pins.context = 1;
  if (!pins.expert) pins.expert = 1;
}

int plan(PlanArguments arguments, const std::string& format, const std::string& cost_model) {
  named_planner(arguments.planner);
  check_output(arguments.output);
  LoadedProblem loaded = load_problem(arguments);
  if (is_costed_by_metis(arguments, format, cost_model))
    return plan_by_metis_formula(arguments, std::move(loaded), format);
  const Problem& problem = loaded.problem;
  if (!format.empty()) pin_for_rows(arguments.search.pins);
  if (std::string note = resolve_pins(arguments, problem.model); !note.empty())
    loaded.warnings.push_back(std::move(note));
  check_wishes(arguments.wishes, problem);
  if (!arguments.json)
    for (const std::string& warning : loaded.warnings) warn(warning);
  if (const std::string fault = contradiction_in(problem, arguments.search.pins); !fault.empty()) {
    complain(fault);
    return kWrongInput;
  }
  const Outcome outcome = is_hopeless(problem) ? Outcome() : search(problem, arguments);
  if (outcome.result.plans.empty()) {
    const std::string reason = outcome.missed.empty()
                                   ? why_nothing_fits(problem, arguments, outcome.result)
                                   : outcome.missed;
    if (arguments.json)
      print(as_json(problem, outcome, loaded.warnings, reason, arguments.explain_search));
    complain(reason);
    return outcome.interrupted ? kInterrupted : kNothingFits;
  }
  if (!arguments.output.empty()) {
    const RankedPlan& best = outcome.result.plans.front();
    write_text_file(arguments.output, plan_file_to_json(problem, best.plan, best.cost));
  }
  if (!format.empty()) return print_rows(format, problem, arguments, outcome);
  print(arguments.json ? as_json(problem, outcome, loaded.warnings, "", arguments.explain_search)
                       : as_text(problem, outcome, arguments.search.pins.schedule.has_value(),
                                 arguments.explain_search));
  return kDone;
}

}  // namespace

Command plan_command() {
  const auto arguments = std::make_shared<PlanArguments>();
  arguments->search.threads = usual_threads();
  Command command;
  command.groups = plan_flags(*arguments);
  const auto format = std::make_shared<std::string>();
  const auto to_print = std::ranges::find(command.groups, "What to print", &FlagGroup::title);
  to_print->flags.push_back(
      {.name = "--format",
       .value = "F",
       .help = "rows of another planner's program instead: metis, amp or fasop",
       .set =
           [format](const std::string& flag, const std::string& text) {
             const std::vector<std::string> known = peer_formats();
             if (std::ranges::find(known, text) == known.end())
               refuse_choice(flag, text, {known.begin(), known.end()});
             *format = text;
           },
       .choices = peer_formats()});
  const auto cost_model = std::make_shared<std::string>();
  const auto searching = std::ranges::find(command.groups, "How to search", &FlagGroup::title);
  searching->flags.insert(searching->flags.begin() + 1, cost_model_flag(*cost_model));
  searching->flags.push_back(
      {.name = "--explain-search",
       .value = "",
       .help = "also print what each pass of the search took and gave (auto)",
       .set = into_switch(arguments->explain_search)});
  command.run = [arguments, format, cost_model] { return plan(*arguments, *format, *cost_model); };
  return command;
}

}  // namespace plait
