#include <memory>

#include "app/request/search_request.h"
#include "app/saved/export.h"
#include "cli/flags/command.h"
#include "cli/flags/export_flags.h"
#include "cli/flags/field_flags.h"
#include "cli/terminal/terminal.h"
#include "cli/verbs/console_session.h"

namespace plait {
namespace {

struct ExportArguments {
  ExportRequest request;
  std::string path;
  bool json = false;
};

int export_plan(const ExportArguments& arguments) {
  ExportRequest request = arguments.request;
  request.name = arguments.path;
  request.threads = usual_threads();
  request.file = read_plan_file(arguments.path);
  const ExportAnswer exported = answer_here(request, arguments.json);
  if (arguments.json)
    print(in_flags(to_json(exported)));
  else if (exported.written())
    print(in_flags(as_text(exported, request.folder)));
  const std::string why = reason(exported);
  if (why.empty()) return kDone;
  complain(in_flags(why));
  return kNothingFits;
}

}  // namespace

Command export_command() {
  const auto arguments = std::make_shared<ExportArguments>();
  FlagGroup flags = export_flags(arguments->request);
  flags.flags.push_back(
      {.name = "--json", .value = "", .help = "print JSON", .set = into_switch(arguments->json)});
  Command command;
  command.groups = {{"Arguments", {plan_file_flag(arguments->path)}}, std::move(flags)};
  command.run = [arguments] { return export_plan(*arguments); };
  return command;
}

}  // namespace plait
