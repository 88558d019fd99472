#include <memory>

#include "app/saved/check.h"
#include "cli/flags/plan_arguments.h"
#include "cli/terminal/terminal.h"

namespace plait {
namespace {

struct CheckArguments {
  std::string path;
  MemoryRule memory;
  bool json = false;
};

int check(const CheckArguments& arguments) {
  const CheckAnswer checked = answer(
      {arguments.path, plan_file_from_json(read_json_file(arguments.path)), arguments.memory});
  print(arguments.json ? to_json(checked) : as_text(checked, style_of(stdout)));
  if (!checked.valid()) return kWrongInput;
  return checked.fits() ? kDone : kNothingFits;
}

}  // namespace

Command check_command() {
  const auto arguments = std::make_shared<CheckArguments>();
  Command command;
  command.groups = {{"Arguments", {plan_file_flag(arguments->path)}},
                    {"Flags",
                     {{.name = "--json",
                       .value = "",
                       .help = "print JSON",
                       .set = into_switch(arguments->json)}}}};
  for (Flag& flag : memory_flags(arguments->memory))
    command.groups.back().flags.push_back(std::move(flag));
  command.run = [arguments] { return check(*arguments); };
  return command;
}

}  // namespace plait
