#include <algorithm>
#include <memory>

#include "app/measured/validate.h"
#include "app/request/search_request.h"
#include "cli/flags/command.h"
#include "cli/terminal/terminal.h"
#include "io/format/text_file.h"

namespace plait {
namespace {

struct ValidateArguments {
  ValidateRequest request;
  std::string rows;
  bool show_constants = false;
  bool json = false;
};

int validate(const ValidateArguments& arguments) {
  if (arguments.show_constants) {
    print(constants_json(arguments.request));
    return kDone;
  }
  const ValidateAnswer compared = answer(arguments.request);
  if (!arguments.rows.empty()) write_text_file(arguments.rows, rows_csv(compared));
  print(arguments.json ? to_json(compared) : as_text(compared, style_of(stdout)));
  return kDone;
}

Setter into_grouping(RunGrouping& into) {
  return [&into](const std::string& flag, const std::string& text) {
    static const std::vector<std::string_view> kNames{"source", "gpu"};
    if (text != "source" && text != "gpu") refuse_choice(flag, text, kNames);
    into = text == "gpu" ? RunGrouping::device : RunGrouping::source;
  };
}

}  // namespace

Command validate_command() {
  const auto arguments = std::make_shared<ValidateArguments>();
  ValidateRequest& a = arguments->request;
  a.threads = std::clamp(usual_threads(), 1, 16);
  Command command;
  command.groups = {
      {"Flags",
       {{.name = "--runs",
         .value = "FILE",
         .help = "CSV of measured runs (default: a small set that is built in)",
         .set = into_text(a.runs)},
        {.name = "--by",
         .value = "WHAT",
         .help = "one line for each source or for each gpu (default: source)",
         .set = into_grouping(a.by),
         .choices = {"source", "gpu"}},
        {.name = "--grade",
         .value = "LETTERS",
         .help = "only rows of these grades: A, AB (default: all)",
         .set = into_text(a.grades)},
        {.name = "--least-step",
         .value = "TIME",
         .help = "leave out steps shorter than this: 50ms",
         .set =
             [&a](const std::string& flag, const std::string& text) {
               a.least_step = Seconds(parse_seconds(flag, text));
             }},
        {.name = "--literal",
         .value = "",
         .help = "take every column as it stands, without the known corrections",
         .set = into_switch(a.literal)},
        {.name = "--profile",
         .value = "PATH",
         .help = "measurements, used for the rows whose model and device they cover",
         .set = into_text(a.profile)},
        {.name = "--catalogue",
         .value = "FILE",
         .help = "more devices, or other constants for known ones",
         .set = [&a](const std::string&, const std::string& text) { a.catalogue.push_back(text); },
         .repeats = true},
        {.name = "--rows",
         .value = "FILE",
         .help = "write the prediction of every row there, as CSV",
         .set = into_text(arguments->rows)},
        {.name = "--json",
         .value = "",
         .help = "print JSON",
         .set = into_switch(arguments->json)}}},
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
