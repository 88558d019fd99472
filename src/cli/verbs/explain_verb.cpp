#include <memory>

#include "app/request/search_request.h"
#include "app/saved/explain.h"
#include "cli/flags/command.h"
#include "cli/terminal/terminal.h"
#include "cli/verbs/console_session.h"

namespace plait {
namespace {

struct ExplainArguments {
  std::string path;
  ExplainRequest request;
  bool json = false;
};

int explain(const ExplainArguments& arguments) {
  ExplainRequest request = arguments.request;
  request.file = read_plan_file(arguments.path);
  request.threads = usual_threads();
  const Explanation explanation = answer_here(request, arguments.json);
  print(arguments.json ? to_json(explanation) : as_text(explanation, style_of(stdout)));
  return kDone;
}

}  // namespace

Command explain_command() {
  const auto arguments = std::make_shared<ExplainArguments>();
  Command command;
  command.groups = {{"Arguments", {plan_file_flag(arguments->path)}},
                    {"Flags",
                     {{.name = "--time-limit",
                       .value = "T",
                       .help = "for each search among other plans (3s)",
                       .set =
                           [a = arguments.get()](const std::string& flag, const std::string& text) {
                             a->request.time_limit = Seconds(parse_seconds(flag, text));
                           }},
                      {.name = "--json",
                       .value = "",
                       .help = "print JSON",
                       .set = into_switch(arguments->json)}}}};
  command.run = [arguments] { return explain(*arguments); };
  return command;
}

}  // namespace plait
