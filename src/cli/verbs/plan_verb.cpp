#include <memory>

#include "app/request/output_file.h"
#include "cli/flags/field_flags.h"
#include "cli/flags/plan_arguments.h"
#include "cli/terminal/terminal.h"
#include "cli/verbs/console_session.h"
#include "io/format/folder.h"
#include "io/format/text_file.h"

namespace plait {
namespace {

int print_exported(const PlanAnswer& answer) {
  for (const std::string& sentence : answer.exported->left_out) warn(sentence);
  print(answer.exported->text);
  if (const std::string why = reason(answer); !why.empty()) complain(in_flags(why));
  return answer.exported->written > 0 ? kDone : kNothingFits;
}

// Configurations of another program, each a file of the folder.
int write_exported(const PlanAnswer& answer, const std::string& folder) {
  for (const std::string& sentence : answer.exported->left_out) warn(sentence);
  for (const auto& [name, text] : answer.exported->files) {
    const std::string path = path_in_folder(folder, name);
    write_text_file(path, text);
    print(path + "\n");
  }
  if (const std::string why = reason(answer); !why.empty()) complain(in_flags(why));
  return answer.exported->written > 0 ? kDone : kNothingFits;
}

int largest(const PlanArguments& arguments) {
  LargestAnswer answer =
      answer_here(LargestRequest{arguments.request, *arguments.largest}, arguments.json);
  say_in_flags(answer.plan.warnings);
  if (!answer.found()) {
    print(arguments.json ? in_flags(to_json(answer)) : nearest_text(answer.plan, style_of(stdout)));
    complain(in_flags(reason(answer)));
    return answer.plan.interrupted ? kInterrupted : kNothingFits;
  }
  if (!arguments.output.empty()) write_text_file(arguments.output, plan_file(answer.plan));
  print(in_flags(arguments.json ? to_json(answer) : as_text(answer, style_of(stdout))));
  return kDone;
}

int plan(const PlanArguments& arguments) {
  if (!arguments.log.empty()) check_output(arguments.log);
  if (arguments.request.format == "aceso" && !arguments.output.empty())
    make_folder(arguments.output);
  else
    check_output(arguments.output);
  if (arguments.largest) return largest(arguments);
  PlanAnswer answer = answer_here(arguments.request, arguments.json);
  say_in_flags(answer.warnings);
  if (!answer.found()) {
    const std::string why = in_flags(reason(answer));
    print(arguments.json ? in_flags(to_json(answer)) : nearest_text(answer, style_of(stdout)));
    complain(why);
    return answer.interrupted ? kInterrupted : kNothingFits;
  }
  if (!arguments.log.empty()) write_text_file(arguments.log, search_log_csv(answer.log));
  if (answer.exported && !answer.exported->files.empty() && !arguments.output.empty())
    return write_exported(answer, arguments.output);
  if (!arguments.output.empty()) write_text_file(arguments.output, plan_file(answer));
  if (answer.exported) return print_exported(answer);
  print(in_flags(arguments.json ? to_json(answer) : as_text(answer, style_of(stdout))));
  return kDone;
}

}  // namespace

Command plan_command() {
  const auto arguments = std::make_shared<PlanArguments>();
  Command command;
  command.groups = plan_flags(*arguments);
  command.run = [arguments] { return plan(*arguments); };
  return command;
}

}  // namespace plait
