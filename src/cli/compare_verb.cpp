#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>

#include "cli/interrupt.h"
#include "cli/nothing_fits.h"
#include "cli/plan_arguments.h"
#include "cli/plan_report.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "io/format/json_writer.h"
#include "plan/describe.h"
#include "report/quantities.h"

namespace plait {
namespace {

// Problems that the exhaustive planner is run on, and how many plans it may look at.
constexpr int kSmallCluster = 8;
constexpr int kFewUnits = 12;
constexpr std::int64_t kMostPlans = 200'000;

// How a planner did.
struct Entry {
  std::string_view planner;
  SearchResult result;
  Seconds elapsed;

  bool found() const { return !result.plans.empty(); }
  Seconds step() const { return result.plans.front().cost.step; }
};

bool is_small(const Problem& problem) {
  return problem.cluster.device_count() <= kSmallCluster && problem.model.unit_count() <= kFewUnits;
}

std::vector<Entry> run_all(const Problem& problem, const PlanArguments& arguments) {
  const Interrupt interrupt;
  std::vector<Entry> entries;
  for (const Planner& planner : planners()) {
    const bool exhaustive = planner.name == "exhaustive";
    if (interrupt.happened() || (exhaustive && !is_small(problem))) continue;
    Progress progress;
    SearchContext context{
        .problem = problem,
        .options = arguments.search,
        .stop = interrupt.token(),
        .on_improvement = [&](const RankedPlan& best) { progress.improved(best.cost.step); },
        .on_progress = [&](double fraction) { progress.advanced(fraction); }};
    context.options.keep = 1;
    if (exhaustive) context.options.max_evaluations = kMostPlans;
    const auto begin = std::chrono::steady_clock::now();
    Entry entry{planner.name, run_search(planner, context), {}};
    entry.elapsed =
        Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Step time over auto's, less 1; nothing where either has no plan.
std::optional<double> behind_auto(const Entry& entry, const std::vector<Entry>& entries) {
  const auto usual = std::ranges::find(entries, "auto", &Entry::planner);
  if (usual == entries.end() || !usual->found() || !entry.found()) return std::nullopt;
  return entry.step() / usual->step() - 1;
}

std::string why_nothing(const Problem& problem, const Entry& entry) {
  if (entry.result.nearest)
    return "nothing fits; in the nearest, " + shortage(problem, *entry.result.nearest);
  if (entry.result.cut_short) return "nothing found in time";
  return entry.result.reason.empty() ? "nothing fits" : entry.result.reason;
}

std::string as_text(const Problem& problem, const std::vector<Entry>& entries) {
  const Style style = style_of(stdout);
  Table table({{"planner", Align::left},
               {"step"},
               {"to auto", Align::right, 1},
               {"plans costed", Align::right, 3},
               {"search", Align::right, 2},
               {"", Align::left},
               {"best plan", Align::left}});
  for (const Entry& entry : entries) {
    const auto behind = behind_auto(entry, entries);
    std::string relation;
    if (behind && entry.planner != "auto")
      relation = std::abs(*behind) < 5e-5 ? "the same" : change(*behind, "slower", "faster");
    table.row({std::string(entry.planner), entry.found() ? in_words(entry.step()) : "-", relation,
               grouped(static_cast<double>(entry.result.evaluations)), in_words(entry.elapsed),
               entry.result.cut_short ? "cut short" : "",
               entry.found() ? short_description(entry.result.plans.front().plan)
                             : why_nothing(problem, entry)});
  }
  return problem_heading(problem, style) + "\n" + table.str(style);
}

std::string as_json(const Problem& problem, const std::vector<Entry>& entries,
                    const std::vector<std::string>& warnings) {
  std::vector<std::string> rows;
  for (const Entry& entry : entries) {
    const auto behind = behind_auto(entry, entries);
    const auto& bound = entry.result.lower_bound;
    JsonObject row;
    row.text("planner", entry.planner)
        .json("step_s", entry.found() ? json_number(entry.step().value) : "null")
        .json("slower_than_auto", behind ? json_number(*behind) : "null")
        .number("evaluations", static_cast<double>(entry.result.evaluations))
        .number("search_s", entry.elapsed.value)
        .boolean("cut_short", entry.result.cut_short)
        .json("lower_bound_s", bound ? json_number(bound->value) : "null");
    if (entry.found())
      row.json("best", ranked_plan_json(problem, entry.result.plans.front()));
    else
      row.text("reason", why_nothing(problem, entry));
    rows.push_back(row.str());
  }
  std::vector<std::string> sentences;
  for (const std::string& warning : warnings) sentences.push_back(json_text(warning));
  return lay_out_json(JsonObject()
                          .json("planners", json_list(rows))
                          .json("warnings", json_list(sentences))
                          .text("model", problem.model.name)
                          .text("cluster", problem.cluster.name)
                          .str());
}

int compare(PlanArguments arguments) {
  LoadedProblem loaded = load_problem(arguments);
  const Problem& problem = loaded.problem;
  if (std::string note = resolve_pins(arguments, problem.model); !note.empty())
    loaded.warnings.push_back(std::move(note));
  if (!arguments.json)
    for (const std::string& warning : loaded.warnings) warn(warning);
  if (const std::string fault = contradiction_in(problem, arguments.search.pins); !fault.empty()) {
    complain(fault);
    return kWrongInput;
  }
  const std::vector<Entry> entries = run_all(problem, arguments);
  print(arguments.json ? as_json(problem, entries, loaded.warnings) : as_text(problem, entries));
  return std::ranges::any_of(entries, &Entry::found) ? kDone : kNothingFits;
}

}  // namespace

Command compare_command() {
  const auto arguments = std::make_shared<PlanArguments>();
  arguments->search.threads = usual_threads();
  Command command;
  command.groups = plan_flags(*arguments);
  const std::set<std::string> of_one_planner{"--planner", "--top", "--output"};
  for (FlagGroup& group : command.groups)
    std::erase_if(group.flags,
                  [&](const Flag& flag) { return of_one_planner.contains(flag.name); });
  command.run = [arguments] { return compare(*arguments); };
  return command;
}

}  // namespace plait
