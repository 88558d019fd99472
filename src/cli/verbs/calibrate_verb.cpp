#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "app/measured/calibrate.h"
#include "app/request/output_file.h"
#include "app/request/search_request.h"
#include "base/printable.h"
#include "cli/flags/command.h"
#include "cli/flags/field_flags.h"
#include "cli/terminal/terminal.h"
#include "cli/verbs/console_session.h"
#include "io/format/text_file.h"

namespace plait {
namespace {

struct CalibrateArguments {
  CalibrateRequest request;
  std::string output;
  bool json = false;
};

int calibrate(const CalibrateArguments& arguments) {
  if (!arguments.output.empty()) check_output(arguments.output);
  const CalibrateAnswer fitted = answer_here(arguments.request, arguments.json);
  print(arguments.json ? to_json(fitted) : in_flags(as_text(fitted, style_of(stdout))));
  if (!fitted.calibration.changed()) {
    complain(in_flags(reason(fitted)));
    return fitted.interrupted ? kInterrupted : kNothingFits;
  }
  if (!arguments.output.empty()) {
    write_text_file(arguments.output, fitted.catalogue);
    if (!arguments.json)
      print(fmt::format("{}: for --catalogue of plait plan, estimate and validate\n",
                        printable(arguments.output)));
  }
  return kDone;
}

}  // namespace

Command calibrate_command() {
  const auto arguments = std::make_shared<CalibrateArguments>();
  CalibrateRequest& request = arguments->request;
  request.threads = std::clamp(usual_threads(), 1, 16);
  Command command;
  command.groups = {
      {"Flags",
       {{.name = "--runs",
         .value = "FILE",
         .help = "CSV of runs that you measured, as plait validate reads it",
         .set = into_text(request.runs),
         .required = true},
        {.name = "--catalogue",
         .value = "FILE",
         .help = "devices and constants that the fit begins from",
         .set = [&request](const std::string&,
                           const std::string& text) { request.catalogue.push_back(text); },
         .repeats = true},
        {.name = "--profile",
         .value = "PATH",
         .help = "measurements, used for the rows whose model and device they cover",
         .set = into_text(request.profile)},
        {.name = "--output",
         .value = "FILE",
         .help = "where to write the constants, for --catalogue",
         .set = into_text(arguments->output),
         .letter = "-o"},
        {.name = "--time-limit",
         .value = "T",
         .help = "stop after 30s, 5m ... with the constants found so far (60s)",
         .set =
             [&request](const std::string& flag, const std::string& text) {
               request.time_limit = Seconds(parse_seconds(flag, text));
             }},
        {.name = "--json",
         .value = "",
         .help = "print JSON",
         .set = into_switch(arguments->json)}}}};
  command.run = [arguments] { return calibrate(*arguments); };
  return command;
}

}  // namespace plait
