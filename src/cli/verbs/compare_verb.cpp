#include <memory>

#include "app/plan/compare.h"
#include "cli/flags/plan_arguments.h"
#include "cli/terminal/terminal.h"
#include "cli/verbs/console_session.h"

namespace plait {
namespace {

int compare(const PlanArguments& arguments) {
  CompareAnswer answer = answer_here(CompareRequest{arguments.request}, arguments.json);
  say_in_flags(answer.warnings);
  print(arguments.json ? to_json(answer) : as_text(answer, style_of(stdout)));
  return answer.found() ? kDone : kNothingFits;
}

}  // namespace

Command compare_command() {
  const auto arguments = std::make_shared<PlanArguments>();
  Command command;
  command.groups = without_flags(
      plan_flags(*arguments),
      {"--planner", "--cost-model", "--top", "--output", "--format", "--max-batch", "--max-seq"});
  command.run = [arguments] { return compare(*arguments); };
  return command;
}

}  // namespace plait
