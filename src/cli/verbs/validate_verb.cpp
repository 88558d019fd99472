#include <algorithm>
#include <memory>

#include "app/measured/validate.h"
#include "app/request/output_file.h"
#include "app/request/search_request.h"
#include "base/error.h"
#include "cli/flags/validate_flags.h"
#include "cli/terminal/terminal.h"
#include "io/format/folder.h"
#include "io/format/text_file.h"

namespace plait {
namespace {

struct ValidateArguments {
  ValidateRequest request;
  std::string rows;
  std::string plans;
  bool table = false;
  bool commands = false;
  bool show_constants = false;
  bool json = false;
};

int validate(const ValidateArguments& arguments) {
  if (arguments.show_constants) {
    print(constants_json(arguments.request));
    return kDone;
  }
  if (arguments.commands && arguments.plans.empty())
    throw InputError("--commands",
                     "needs --plans DIR, where the plans that they price are written");
  if (arguments.commands && arguments.json)
    throw InputError("--commands", "prints lines for a shell: leave out --json");
  if (!arguments.rows.empty()) check_output(arguments.rows);
  if (!arguments.plans.empty()) check_folder(arguments.plans, true);
  const ValidateAnswer compared = answer(arguments.request);
  if (!arguments.rows.empty()) write_text_file(arguments.rows, rows_csv(compared));
  if (!arguments.plans.empty()) {
    make_folder(arguments.plans);
    for_each_row_plan(compared, [&](const RowPlan& plan) {
      write_text_file(arguments.plans + "/" + plan.name + ".json", plan.text);
    });
  }
  if (arguments.commands) {
    print(row_commands(compared, arguments.plans));
    return kDone;
  }
  const Style style = style_of(stdout);
  print(arguments.json    ? to_json(compared)
        : arguments.table ? as_table(compared, style)
                          : as_text(compared, style));
  return kDone;
}

}  // namespace

Command validate_command() {
  const auto arguments = std::make_shared<ValidateArguments>();
  ValidateRequest& a = arguments->request;
  a.threads = std::clamp(usual_threads(), 1, 16);
  Command command;
  FlagGroup group = validate_flags(a);
  group.flags.push_back({.name = "--rows",
                         .value = "FILE",
                         .help = "write the prediction of every row there, as CSV",
                         .set = into_text(arguments->rows)});
  group.flags.push_back({.name = "--plans",
                         .value = "DIR",
                         .help = "write what was read from every row there, as plan files: plait "
                                 "estimate gives the same number",
                         .set = into_text(arguments->plans)});
  group.flags.push_back({.name = "--commands",
                         .value = "",
                         .help =
                             "with --plans: print the command that gives the prediction of each "
                             "row by itself, and the number",
                         .set = into_switch(arguments->commands)});
  group.flags.push_back({.name = "--table",
                         .value = "",
                         .help = "time, memory and false alarms of each source, the mean over "
                                 "sources, and what would have to change in the worst rows",
                         .set = into_switch(arguments->table)});
  group.flags.push_back(
      {.name = "--json", .value = "", .help = "print JSON", .set = into_switch(arguments->json)});
  command.groups = {std::move(group),
                    // For scripts/calibrate.
                    {"",
                     {{.name = "--constants",
                       .value = "FILE",
                       .help = "constants of the analytic model to try",
                       .set = into_text(a.constants)},
                      {.name = "--show-constants",
                       .value = "",
                       .help = "print the constants of the analytic model",
                       .set = into_switch(arguments->show_constants)}}}};
  command.run = [arguments] { return validate(*arguments); };
  return command;
}

}  // namespace plait
