#include <memory>

#include "app/known/lists.h"
#include "cli/flags/command.h"
#include "cli/terminal/terminal.h"

namespace plait {
namespace {

struct ListArguments {
  bool json = false;
  std::vector<std::string> catalogue;
};

Flag json_flag(ListArguments& arguments) {
  return {.name = "--json", .value = "", .help = "print JSON", .set = into_switch(arguments.json)};
}

Flag catalogue_flag(ListArguments& arguments) {
  return {.name = "--catalogue",
          .value = "FILE",
          .help = "devices, instances and frameworks of your own, besides those that are built in",
          .set = [&](const std::string&,
                     const std::string& text) { arguments.catalogue.push_back(text); },
          .repeats = true};
}

template <typename List>
int print_list(const ListArguments& arguments, const List& list) {
  print(arguments.json ? to_json(list) : as_text(list, style_of(stdout)));
  return kDone;
}

int list_models(const ListArguments& arguments) { return print_list(arguments, known_models()); }

int list_devices(const ListArguments& arguments) {
  return print_list(arguments, load_catalogue(arguments.catalogue).devices);
}

int list_instances(const ListArguments& arguments) {
  return print_list(arguments, load_catalogue(arguments.catalogue).instances);
}

int list_frameworks(const ListArguments& arguments) {
  return print_list(arguments, load_catalogue(arguments.catalogue).frameworks);
}

Command list_command(int (*list)(const ListArguments&), bool has_catalogue) {
  const auto arguments = std::make_shared<ListArguments>();
  Command command;
  command.groups = {{"Flags", {json_flag(*arguments)}}};
  if (has_catalogue) command.groups[0].flags.push_back(catalogue_flag(*arguments));
  command.run = [arguments, list] { return list(*arguments); };
  return command;
}

}  // namespace

Command models_command() { return list_command(list_models, false); }
Command devices_command() { return list_command(list_devices, true); }
Command instances_command() { return list_command(list_instances, true); }
Command frameworks_command() { return list_command(list_frameworks, true); }

}  // namespace plait
