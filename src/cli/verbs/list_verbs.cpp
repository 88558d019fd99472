#include <algorithm>
#include <cctype>
#include <memory>

#include "app/known/lists.h"
#include "base/error.h"
#include "cli/flags/command.h"
#include "cli/terminal/terminal.h"

namespace plait {
namespace {

struct ListArguments {
  bool json = false;
  std::string name;  // that entries have in theirs; all where it is empty
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

Flag name_flag(ListArguments& arguments) {
  return {.name = "NAME",
          .value = "",
          .help = "only those that have it in one of their names",
          .set = [&](const std::string&, const std::string& text) { arguments.name = text; }};
}

std::vector<std::string> names_of(const KnownModel& model) {
  std::vector<std::string> names = model.aliases;
  names.push_back(model.name);
  return names;
}

std::vector<std::string> names_of(const DeviceEntry& entry) {
  std::vector<std::string> names = entry.aliases;
  names.push_back(entry.type.name);
  return names;
}

std::vector<std::string> names_of(const Instance& instance) {
  return {instance.name, instance.device, instance.provider};
}

std::vector<std::string> names_of(const FrameworkEntry& entry) {
  std::vector<std::string> names = entry.aliases;
  names.push_back(entry.framework.name);
  return names;
}

bool contains(const std::string& text, const std::string& part) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end() ||
         part.empty();
}

template <typename List>
int print_list(const ListArguments& arguments, List list) {
  std::erase_if(list, [&](const auto& entry) {
    return std::ranges::none_of(
        names_of(entry), [&](const std::string& name) { return contains(name, arguments.name); });
  });
  if (list.empty() && !arguments.name.empty())
    throw InputError(arguments.name.substr(0, 80),
                     "is not in any name of the list; without it, all of the list is printed");
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
  command.groups = {{"Flags", {name_flag(*arguments), json_flag(*arguments)}}};
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
