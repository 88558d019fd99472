#include "cli/flags/export_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace plait {

FlagGroup export_flags(ExportRequest& request) {
  return {"Flags",
          {{.name = "--to",
            .value = "TARGET",
            .help = fmt::format("the program: {}", fmt::join(exporter_names(), ", ")),
            .set = into_text(request.to),
            .choices = exporter_names(),
            .required = true},
           {.name = "--output",
            .value = "DIR",
            .help = "the folder to write to",
            .set =
                [&request](const std::string& flag, const std::string& text) {
                  if (text.empty()) throw InputError(flag, "'' is not the name of a folder");
                  request.folder = text;
                },
            .letter = "-o",
            .required = true},
           {.name = "--launcher",
            .value = "L",
            .help = fmt::format("what starts the nodes: {} (torchrun, by hand)",
                                fmt::join(launcher_names(), ", ")),
            .set = into_choice(request.launcher, launcher_named, launcher_names()),
            .choices = as_strings(launcher_names())},
           {.name = "--nearest",
            .value = "",
            .help = "where the program cannot run the plan, write the best one that it can",
            .set = into_switch(request.nearest)},
           {.name = "--force",
            .value = "",
            .help = "write into a folder that is not empty; files of the same names are replaced",
            .set = into_switch(request.force)},
           {.name = "--time-limit",
            .value = "T",
            .help = "of the search for the best plan that the program can run (60s)",
            .set = [&request](const std::string& flag, const std::string& text) {
              request.time_limit = Seconds(parse_seconds(flag, text));
            }}}};
}

}  // namespace plait
