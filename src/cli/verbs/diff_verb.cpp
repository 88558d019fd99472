#include <memory>

#include "app/saved/diff.h"
#include "base/error.h"
#include "cli/flags/command.h"
#include "cli/terminal/terminal.h"

namespace plait {
namespace {

struct DiffArguments {
  std::vector<std::string> paths;
  bool json = false;
};

int diff(const DiffArguments& arguments) {
  if (arguments.paths.size() != 2) throw InputError("plait diff", "needs two plan files");
  DiffRequest request;
  for (int i = 0; i < 2; ++i) {
    request.names[i] = arguments.paths[i];
    request.files[i] = read_plan_file(arguments.paths[i]);
  }
  const DiffAnswer compared = answer(request);
  print(arguments.json ? to_json(compared) : as_text(compared, style_of(stdout)));
  return kDone;
}

}  // namespace

Command diff_command() {
  const auto arguments = std::make_shared<DiffArguments>();
  Command command;
  command.groups = {
      {"Arguments",
       {{.name = "PLAN",
         .value = "PLAN",
         .help = "two files that plait plan -o saved",
         .set = [a = arguments.get()](const std::string&,
                                      const std::string& text) { a->paths.push_back(text); },
         .required = true,
         .repeats = true}}},
      {"Flags",
       {{.name = "--json",
         .value = "",
         .help = "print JSON",
         .set = into_switch(arguments->json)}}}};
  command.run = [arguments] { return diff(*arguments); };
  return command;
}

}  // namespace plait
