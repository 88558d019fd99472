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
  take_plan_arguments(arguments.plan, request);
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

}  // namespace

Command replan_command() {
  const auto arguments = std::make_shared<ReplanArguments>();
  Command command;
  command.groups = {{"Arguments", {plan_file_flag(arguments->path)}},
                    change_flags(arguments->request)};
  for (FlagGroup& group : replan_plan_flags(arguments->plan)) {
    if (group.flags.front().name == "--catalogue") group.title = "What can be added";
    command.groups.push_back(std::move(group));
  }
  command.run = [arguments] { return replan(*arguments); };
  return command;
}

}  // namespace plait
