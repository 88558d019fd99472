#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "app/request/search_request.h"
#include "app/saved/export.h"
#include "cli/flags/command.h"
#include "cli/flags/field_flags.h"
#include "cli/terminal/terminal.h"
#include "cli/verbs/console_session.h"
#include "io/format/folder.h"

namespace plait {
namespace {

struct ExportArguments {
  ExportRequest request;
  std::string path;
  std::string folder;
  bool force = false;
  bool json = false;
};

int export_plan(const ExportArguments& arguments) {
  ExportRequest request = arguments.request;
  request.name = arguments.path;
  request.threads = usual_threads();
  request.file = read_plan_file(arguments.path);
  check_folder(arguments.folder, arguments.force);
  const ExportAnswer exported = answer_here(request, arguments.json);
  if (exported.written()) {
    make_folder(arguments.folder);
    for (const ExportedFile& file : exported.files)
      write_folder_file(arguments.folder, file.name, file.text, file.executable);
  }
  if (arguments.json)
    print(in_flags(to_json(exported)));
  else if (exported.written())
    print(in_flags(as_text(exported, arguments.folder)));
  const std::string why = reason(exported);
  if (why.empty()) return kDone;
  complain(in_flags(why));
  return kNothingFits;
}

std::vector<Flag> target_flags(ExportArguments& a) {
  return {{.name = "--to",
           .value = "TARGET",
           .help = fmt::format("the program: {}", fmt::join(exporter_names(), ", ")),
           .set = into_text(a.request.to),
           .choices = exporter_names(),
           .required = true},
          {.name = "--output",
           .value = "DIR",
           .help = "the folder to write to",
           .set = into_text(a.folder),
           .letter = "-o",
           .required = true},
          {.name = "--launcher",
           .value = "L",
           .help = fmt::format("what starts the nodes: {} (torchrun, by hand)",
                               fmt::join(launcher_names(), ", ")),
           .set = into_choice(a.request.launcher, launcher_named, launcher_names()),
           .choices = as_strings(launcher_names())},
          {.name = "--nearest",
           .value = "",
           .help = "where the program cannot run the plan, write the best one that it can",
           .set = into_switch(a.request.nearest)},
          {.name = "--force",
           .value = "",
           .help = "write into a folder that is not empty; files of the same names are replaced",
           .set = into_switch(a.force)},
          {.name = "--time-limit",
           .value = "T",
           .help = "of the search for the best plan that the program can run (60s)",
           .set =
               [&a](const std::string& flag, const std::string& text) {
                 a.request.time_limit = Seconds(parse_seconds(flag, text));
               }},
          {.name = "--json", .value = "", .help = "print JSON", .set = into_switch(a.json)}};
}

}  // namespace

Command export_command() {
  const auto arguments = std::make_shared<ExportArguments>();
  Command command;
  command.groups = {{"Arguments", {plan_file_flag(arguments->path)}},
                    {"Flags", target_flags(*arguments)}};
  command.run = [arguments] { return export_plan(*arguments); };
  return command;
}

}  // namespace plait
