#include <memory>

#include "app/request/output_file.h"
#include "app/saved/estimate.h"
#include "cli/flags/plan_arguments.h"
#include "cli/terminal/terminal.h"
#include "io/format/text_file.h"

namespace plait {
namespace {

struct EstimateArguments {
  std::string path;
  std::string trace;
  MemoryRule memory;
  std::vector<StatedPrice> prices;
  bool json = false;
};

int estimate(const EstimateArguments& arguments) {
  const EstimateRequest request{arguments.path, read_plan_file(arguments.path),
                                !arguments.trace.empty(), arguments.memory, arguments.prices};
  check_output(arguments.trace);
  const EstimateAnswer estimated = answer(request);
  if (estimated.trace) write_text_file(arguments.trace, *estimated.trace);
  print(arguments.json ? to_json(estimated) : as_text(estimated, style_of(stdout)));
  const std::string why = reason(estimated);
  if (why.empty()) return kDone;
  complain(why);
  return kNothingFits;
}

}  // namespace

Command estimate_command() {
  const auto arguments = std::make_shared<EstimateArguments>();
  Command command;
  command.groups = {
      {"Arguments", {plan_file_flag(arguments->path)}},
      {"Flags",
       {{.name = "--json", .value = "", .help = "print JSON", .set = into_switch(arguments->json)},
        {.name = "--trace",
         .value = "FILE",
         .help = "write when every stage would run what, for Perfetto; plait train "
                 "--trace has the same rows",
         .set = into_text(arguments->trace)}}}};
  for (Flag& flag : memory_flags(arguments->memory))
    command.groups.back().flags.push_back(std::move(flag));
  command.groups.back().flags.push_back(price_flag(arguments->prices));
  command.run = [arguments] { return estimate(*arguments); };
  return command;
}

}  // namespace plait
