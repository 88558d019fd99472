#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "app/request/output_file.h"
#include "base/error.h"
#include "cli/flags/command.h"
#include "cli/flags/field_flags.h"
#include "cli/flags/plan_arguments.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/terminal.h"
#include "cli/verbs/trial_report.h"
#include "cost/engine.h"
#include "io/format/json_reader.h"
#include "io/plan/plan_json.h"
#include "plan/describe.h"
#include "report/quantities.h"
#include "runtime/backend.h"
#include "runtime/lower/layout.h"
#include "runtime/trial/plan_fields.h"
#include "runtime/trial/shell_words.h"

namespace plait {
namespace {

constexpr int kMaxTrials = 1000;
constexpr int kMaxSteps = 100'000;

struct TrialArguments : PlanArguments {
  std::vector<std::string> plans;
  std::string launch;
  std::string train;  // more words for plait train, where that is what is launched
  bool own = false;   // it is
  std::string folder = "trials";
  std::string table;
  std::optional<int> trials;
  bool retry = false;
  runtime::TrialOptions trial;  // limits and patterns
};

// A plan that will be tried, with its problem's prediction of it.
struct Candidate {
  RankedPlan ranked;
  std::string path;  // where it lies for the command to read
  std::string command;
  std::string id;
};

struct Candidates {
  Problem problem;
  std::vector<RankedPlan> plans;
};

std::vector<std::string> plan_paths(const std::vector<std::string>& given) {
  std::vector<std::string> paths;
  for (const std::string& path : given) {
    std::error_code fault;
    if (!std::filesystem::is_directory(path, fault)) {
      paths.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (std::filesystem::directory_iterator entry(path, fault), end; !fault && entry != end;
         entry.increment(fault))
      if (entry->path().extension() == ".json") inside.push_back(entry->path().string());
    if (fault) throw InputError(path, "cannot be read: " + fault.message());
    if (inside.empty()) throw InputError(path, "has no plan files, which end in .json");
    std::sort(inside.begin(), inside.end());
    paths.insert(paths.end(), inside.begin(), inside.end());
  }
  return paths;
}

// The plans of files, the predicted best first.
Candidates saved_candidates(const TrialArguments& arguments) {
  if (!arguments.request.source.model.empty() || !arguments.request.source.cluster.empty())
    throw InputError("--plans", "goes without --model and --cluster, which the plan files have");
  std::optional<Candidates> out;
  std::string first;
  for (const std::string& path : plan_paths(arguments.plans)) {
    PlanFile file = read_plan_file(path);
    if (!out) {
      out = Candidates{file.problem, {}};
      first = path;
    } else if (file.problem != out->problem) {
      throw InputError(path, fmt::format("is for another problem than {}: its model, cluster, job "
                                         "or profile differ",
                                         first));
    }
    const Estimate cost = CostEngine(out->problem).simulate(file.plan);
    out->plans.push_back({std::move(file.plan), cost});
  }
  std::stable_sort(
      out->plans.begin(), out->plans.end(),
      [](const RankedPlan& a, const RankedPlan& b) { return a.cost.step < b.cost.step; });
  return std::move(*out);
}

// The best plans of a search. No plans: nothing fits, and why was said.
Candidates found_candidates(const TrialArguments& arguments, const Interrupt& interrupt) {
  const ProblemSource& source = arguments.request.source;
  for (const auto& [flag, missing] : {std::pair("--model", source.model.empty() && !source.metis),
                                      std::pair("--cluster", source.cluster.empty()),
                                      std::pair("--global-batch", source.job.global_batch == 0)})
    if (missing)
      throw InputError(flag, "is missing: say what to train and on what, or give --plans");
  Session session;
  session.stop = interrupt.token();
  session.on_warning = [](const std::string& text) { warn(in_flags(text)); };
  PlanAnswer found = answer(arguments.request, session);
  if (!found.found()) complain(in_flags(reason(found)));
  return {std::move(found.problem), std::move(found.result.plans)};
}

// Without plans that cannot be executed; `why_not` is the reason of the best of them.
std::vector<Candidate> prepared(const TrialArguments& arguments, Candidates found,
                                std::string& why_not) {
  if (arguments.own)
    std::erase_if(found.plans, [&](const RankedPlan& ranked) {
      std::string reason = runtime::unsupported_reason(found.problem, ranked.plan);
      if (why_not.empty()) why_not = reason;
      return !reason.empty();
    });
  const std::size_t most = static_cast<std::size_t>(arguments.trials.value_or(kMaxTrials));
  if (found.plans.size() > most) found.plans.resize(most);
  std::vector<Candidate> out;
  for (RankedPlan& ranked : found.plans) {
    Candidate candidate{std::move(ranked), "", "", ""};
    candidate.id = runtime::trial_id(found.problem, candidate.ranked.plan, arguments.launch);
    candidate.path =
        (std::filesystem::path(arguments.folder) / fmt::format("plan-{}.json", candidate.id))
            .string();
    const auto fields = runtime::plan_fields(found.problem, candidate.ranked.plan, candidate.path);
    candidate.command = runtime::with_fields(arguments.launch, fields);
    out.push_back(std::move(candidate));
  }
  return out;
}

runtime::TrialRow try_out(const TrialArguments& arguments, const Problem& problem,
                          const Candidate& candidate, const Interrupt& interrupt) {
  write_text_file(candidate.path,
                  plan_file_to_json(problem, candidate.ranked.plan, candidate.ranked.cost));
  runtime::TrialOptions options = arguments.trial;
  options.command = candidate.command;
  options.global_batch = problem.job.global_batch;
  options.log_path = std::filesystem::path(candidate.path).replace_extension(".log").string();
  options.stop = interrupt.token();
  for (const auto& [name, value] :
       runtime::plan_fields(problem, candidate.ranked.plan, candidate.path))
    options.environment.emplace_back(runtime::variable_of(name), value);
  return {candidate.id, describe(candidate.ranked.plan), candidate.ranked.cost.step,
          candidate.ranked.cost.peak_memory(), runtime::run_trial(options)};
}

std::string news_of(const runtime::TrialRow& row) {
  if (row.result.step)
    return fmt::format("{} (predicted {}, {:+.1f} %)", in_words(*row.result.step),
                       in_words(row.predicted), 100 * *row.error());
  return fmt::format("{}: {}", name_of(row.result.end), row.result.reason.substr(0, 200));
}

void make_folder(const std::string& folder) {
  std::error_code fault;
  std::filesystem::create_directories(folder, fault);
  std::error_code unknown;
  if (!std::filesystem::is_directory(folder, unknown))
    throw InputError(
        "--dir", fmt::format("{} cannot be made: {}", folder, (fault ? fault : unknown).message()));
}

// plait train as the command, where the user has none.
void launch_own(TrialArguments& arguments) {
  if (access(runtime::torch_program_file().c_str(), X_OK) != 0) runtime::need_backend("trial");
  arguments.own = true;
  arguments.launch = fmt::format("{} train \"$PLAIT_PLAN\" --local {{world}} --steps {} {}",
                                 runtime::shell_quoted(runtime::program_file()),
                                 arguments.trial.warm_up + arguments.trial.steps, arguments.train);
}

int trial(TrialArguments arguments) {
  if (!arguments.launch.empty() && !arguments.train.empty())
    throw InputError("--train", "goes without --launch, which starts another program");
  check_output(arguments.output);
  check_output(arguments.table);
  const runtime::RunLog checked(arguments.trial.patterns, 1);
  if (arguments.launch.empty()) launch_own(arguments);
  Interrupt interrupt(Interrupt::By::requests);
  if (!arguments.trials && arguments.plans.empty()) arguments.trials = 5;
  arguments.request.search.keep =
      arguments.own ? kMaxTrials : arguments.trials.value_or(kMaxTrials);
  Candidates found = arguments.plans.empty() ? found_candidates(arguments, interrupt)
                                             : saved_candidates(arguments);
  if (found.plans.empty()) return kNothingFits;
  const Problem problem = found.problem;
  std::string why_not;
  const std::vector<Candidate> candidates = prepared(arguments, std::move(found), why_not);
  if (candidates.empty()) {
    complain("none of the plans can be executed by plait train: " + why_not);
    return kNothingFits;
  }
  make_folder(arguments.folder);
  if (arguments.table.empty())
    arguments.table = (std::filesystem::path(arguments.folder) / "trials.csv").string();
  runtime::TrialRows table(arguments.table);
  std::vector<runtime::TrialRow> rows;
  for (std::size_t i = 0; i < candidates.size() && !interrupt.happened(); ++i) {
    const Candidate& candidate = candidates[i];
    const runtime::TrialRow* before = table.find(candidate.id);
    const bool known = before != nullptr &&
                       !(arguments.retry && before->result.end != runtime::TrialEnd::measured);
    if (known) {
      rows.push_back(*before);
    } else {
      runtime::TrialRow row = try_out(arguments, problem, candidate, interrupt);
      if (row.result.end == runtime::TrialEnd::interrupted) break;
      table.append(row, problem);
      rows.push_back(std::move(row));
    }
    complain(fmt::format("trial {} of {}{}: {}", i + 1, candidates.size(),
                         known ? " (from the table)" : "", news_of(rows.back())));
  }
  const int best = agreement_of(rows).best;
  if (best >= 0 && !arguments.output.empty()) {
    const RankedPlan& ranked = candidates[static_cast<std::size_t>(best)].ranked;
    write_text_file(arguments.output, plan_file_to_json(problem, ranked.plan, ranked.cost));
  }
  if (!rows.empty())
    print(arguments.json ? trials_as_json(rows) : trials_as_text(rows, style_of(stdout)));
  if (interrupt.happened()) return kInterrupted;
  return best < 0 ? kNothingFits : kDone;
}

Setter into_seconds(Seconds& into) {
  return [&into](const std::string& flag, const std::string& text) {
    into = Seconds(parse_seconds(flag, text));
  };
}

FlagGroup trial_flags(TrialArguments& a) {
  return {
      "How to try plans",
      {{.name = "--launch",
        .value = "CMD",
        .help = "the shell command that trains with a plan; {plan}, {tp}, {pp}, {dp}, "
                "{micro_batch}, ... stand for what is in it, and so do PLAIT_PLAN, PLAIT_TP, ...; "
                "plait train on this machine by default",
        .set = into_text(a.launch)},
       {.name = "--train",
        .value = "WORDS",
        .help = "more words for plait train: '--device cpu --threads-per-rank 1,1,4,4'",
        .set = into_text(a.train)},
       {.name = "--budget",
        .value = "N",
        .help = "how many of the best plans to try (5; all of --plans)",
        .set = into_integer(a.trials, 1, kMaxTrials),
        .hidden = {"--top"}},
       {.name = "--plans",
        .value = "PATH",
        .help = "try the plans of these files instead of searching: a file or a directory",
        .set = [&a](const std::string&, const std::string& text) { a.plans.push_back(text); },
        .repeats = true},
       {.name = "--steps",
        .value = "N",
        .help = "steps that count; the command is stopped after them (10)",
        .set = into_integer(a.trial.steps, 1, kMaxSteps)},
       {.name = "--warm-up",
        .value = "N",
        .help = "steps before them that do not (3)",
        .set = into_integer(a.trial.warm_up, 0, kMaxSteps)},
       {.name = "--timeout",
        .value = "T",
        .help = "of one trial (10m)",
        .set = into_seconds(a.trial.timeout)},
       {.name = "--silence",
        .value = "T",
        .help = "a command that prints nothing for this long hangs (never)",
        .set = into_seconds(a.trial.silence)},
       {.name = "--grace",
        .value = "T",
        .help = "what a command that is stopped has to clean up (10s)",
        .set = into_seconds(a.trial.grace)},
       {.name = "--time-pattern",
        .value = "REGEX",
        .help = "where the log tells the time of a step: one group for the number, in seconds, or "
                "a second one for its unit",
        .set = into_text(a.trial.patterns.time)},
       {.name = "--memory-pattern",
        .value = "REGEX",
        .help = "where it tells the memory, in GiB or with its unit",
        .set = into_text(a.trial.patterns.memory)},
       {.name = "--dir",
        .value = "DIR",
        .help = "where plans, logs and the table of results go (trials)",
        .set = into_text(a.folder)},
       {.name = "--csv",
        .value = "FILE",
        .help = "the table of results; what is in it is not run again (DIR/trials.csv)",
        .set = into_text(a.table)},
       {.name = "--retry",
        .value = "",
        .help = "run those again that failed, ran out of memory or time",
        .set = into_switch(a.retry)}}};
}

}  // namespace

Command trial_command() {
  const auto arguments = std::make_shared<TrialArguments>();
  std::vector<FlagGroup> groups{trial_flags(*arguments)};
  // --plans makes what to plan needless; trials are about time, not money.
  for (FlagGroup& group :
       without_flags(plan_flags(*arguments), {"--objective", "--deadline", "--budget", "--tokens",
                                              "--steps", "--top", "--cost-model", "--format"})) {
    for (Flag& flag : group.flags) flag.required = false;
    groups.push_back(std::move(group));
  }
  Command command;
  command.groups = std::move(groups);
  command.run = [arguments] { return trial(*arguments); };
  return command;
}

}  // namespace plait
