#include <memory>

#include "app/request/output_file.h"
#include "app/run/trial.h"
#include "cli/flags/field_flags.h"
#include "cli/flags/plan_arguments.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/terminal.h"
#include "io/format/text_file.h"

namespace plait {
namespace {

constexpr int kMaxSteps = 100'000;

struct TrialArguments : PlanArguments {
  TrialRequest trial;  // whose search is the request of PlanArguments
};

int trial(const TrialArguments& arguments) {
  check_output(arguments.output);
  TrialRequest request = arguments.trial;
  request.search = arguments.request;
  const Interrupt interrupt;
  TrialSession session;
  session.stop = interrupt.token();
  session.on_warning = [](const std::string& text) { warn(in_flags(text)); };
  session.tell = complain;
  const TrialAnswer tried = answer(request, session);
  if (!tried.reason.empty()) complain(in_flags(tried.reason));
  const std::string best = best_plan_file(tried);
  if (!best.empty() && !arguments.output.empty()) write_text_file(arguments.output, best);
  if (!tried.rows.empty())
    print(arguments.json ? to_json(tried) : as_text(tried, style_of(stdout)));
  if (tried.interrupted) return kInterrupted;
  return best.empty() ? kNothingFits : kDone;
}

Setter into_seconds(Seconds& into) {
  return [&into](const std::string& flag, const std::string& text) {
    into = Seconds(parse_seconds(flag, text));
  };
}

FlagGroup trial_flags(TrialRequest& a) {
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
        .set = into_integer(a.limits.steps, 1, kMaxSteps)},
       {.name = "--warm-up",
        .value = "N",
        .help = "steps before those, which do not count (3)",
        .set = into_integer(a.limits.warm_up, 0, kMaxSteps)},
       {.name = "--timeout",
        .value = "T",
        .help = "longest time of one trial (10m)",
        .set = into_seconds(a.limits.timeout)},
       {.name = "--silence",
        .value = "T",
        .help = "stop a command that has printed nothing for this long (never)",
        .set = into_seconds(a.limits.silence)},
       {.name = "--grace",
        .value = "T",
        .help = "time that a stopped command has to clean up (10s)",
        .set = into_seconds(a.limits.grace)},
       {.name = "--time-pattern",
        .value = "REGEX",
        .help = "where the log tells the time of a step: one group for the number, in seconds, or "
                "a second one for its unit",
        .set = into_text(a.limits.patterns.time)},
       {.name = "--memory-pattern",
        .value = "REGEX",
        .help = "where it tells the memory, in GiB or with its unit",
        .set = into_text(a.limits.patterns.memory)},
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
        .help = "run plans again that failed or ran out of memory or time",
        .set = into_switch(a.retry)}}};
}

}  // namespace

Command trial_command() {
  const auto arguments = std::make_shared<TrialArguments>();
  std::vector<FlagGroup> groups{trial_flags(arguments->trial)};
  // --plans makes what to plan needless; trials are about time, not money.
  for (FlagGroup& group :
       without_flags(plan_flags(*arguments),
                     {"--objective", "--deadline", "--budget", "--tokens", "--steps", "--top",
                      "--cost-model", "--format", "--goodput", "--max-batch", "--max-seq"})) {
    for (Flag& flag : group.flags) flag.required = false;
    groups.push_back(std::move(group));
  }
  Command command;
  command.groups = std::move(groups);
  command.run = [arguments] { return trial(*arguments); };
  return command;
}

}  // namespace plait
