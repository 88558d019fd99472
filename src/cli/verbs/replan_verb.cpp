#include <memory>

#include "app/clusters/replan.h"
#include "app/request/output_file.h"
#include "base/error.h"
#include "cli/flags/cluster_flags.h"
#include "cli/flags/field_flags.h"
#include "cli/flags/plan_arguments.h"
#include "cli/terminal/terminal.h"
#include "cli/verbs/console_session.h"
#include "io/format/text_file.h"

namespace plait {
namespace {

struct ReplanArguments {
  PlanArguments plan;
  ReplanRequest request;
  std::string path;
};

int replan(const ReplanArguments& arguments) {
  ReplanRequest request = arguments.request;
  check_change(request);
  check_output(arguments.plan.output);
  request.before = read_plan_file(arguments.path);
  request.catalogue = arguments.plan.request.source.catalogue;
  request.planner = arguments.plan.request.planner;
  request.search = arguments.plan.request.search;
  request.search.keep = 1;
  request.memory = arguments.plan.request.source.memory;
  const bool json = arguments.plan.json;
  const ReplanAnswer answer = answer_here(request, json);
  if (!answer.found()) {
    complain(in_flags(reason(answer)));
    return answer.interrupted ? kInterrupted : kNothingFits;
  }
  if (!arguments.plan.output.empty()) write_text_file(arguments.plan.output, plan_file(answer));
  print(json ? to_json(answer) : as_text(answer, style_of(stdout)));
  return kDone;
}

FlagGroup change_flags(ReplanRequest& a) {
  return {"What changed",
          {{.name = "--lost",
            .value = "NODES",
            .help = "nodes that are gone, by name: node3,node7",
            .set = into_words(a.lost),
            .repeats = true},
           {.name = "--lost-devices",
            .value = "IDS",
            .help = "devices that are gone: 5,6 or 8-15",
            .set = into_devices(a.lost_devices),
            .repeats = true},
           {.name = "--slow",
            .value = "NODE=F",
            .help = "a node that computes at a fraction of its speed: node2=0.5",
            .set = into_slow(a.slow),
            .repeats = true},
           {.name = "--add",
            .value = "C",
            .help = "nodes that came, as the cluster shorthand has them: 2xA100-80GB:8",
            .set = [&a](const std::string&, const std::string& text) { a.add.push_back(text); },
            .repeats = true},
           {.name = "--restart",
            .value = "T",
            .help = "what a restart takes besides moving state (60s)",
            .set = [&a](const std::string& flag, const std::string& text) {
              a.restart = Seconds(parse_seconds(flag, text));
            }}}};
}

}  // namespace

Command replan_command() {
  const auto arguments = std::make_shared<ReplanArguments>();
  Command command;
  command.groups = {{"Arguments", {plan_file_flag(arguments->path)}},
                    change_flags(arguments->request)};
  for (FlagGroup& group :
       only_flags(plan_flags(arguments->plan),
                  {"--catalogue", "--planner", "--time-limit", "--threads", "--json", "--output",
                   "--memory-limit", "--reserve", "--offload"})) {
    if (group.flags.front().name == "--catalogue") group.title = "What can be added";
    command.groups.push_back(std::move(group));
  }
  command.run = [arguments] { return replan(*arguments); };
  return command;
}

}  // namespace plait
