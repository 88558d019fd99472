#include <memory>

#include "app/clusters/pareto.h"
#include "app/request/output_file.h"
#include "base/error.h"
#include "cli/flags/cluster_flags.h"
#include "cli/flags/field_flags.h"
#include "cli/flags/plan_arguments.h"
#include "cli/terminal/terminal.h"
#include "cli/verbs/console_session.h"
#include "io/format/text_file.h"

namespace plait {
namespace {

struct ParetoArguments {
  PlanArguments plan;
  std::vector<Offer> instances;
  bool spot = false;
  bool csv = false;
  std::string svg;
};

int pareto(const ParetoArguments& arguments) {
  const bool json = arguments.plan.json;
  if (json && arguments.csv) throw InputError("--csv", "contradicts --json; give one");
  check_output(arguments.svg);
  ParetoAnswer answer =
      answer_here(ParetoRequest{arguments.plan.request, arguments.instances, arguments.spot}, json);
  say_in_flags(answer.warnings);
  if (!arguments.svg.empty()) write_text_file(arguments.svg, as_svg(answer));
  if (json) print(to_json(answer));
  if (arguments.csv) print(to_csv(answer));
  if (!json && !arguments.csv && answer.found()) print(as_text(answer, style_of(stdout)));
  if (answer.found() && answer.missed.empty()) return kDone;
  complain(in_flags(reason(answer)));
  return answer.interrupted ? kInterrupted : kNothingFits;
}

std::vector<FlagGroup> pareto_flags(ParetoArguments& a) {
  std::vector<FlagGroup> groups = pareto_plan_flags(a.plan);
  groups.insert(groups.begin() + 1, offer_flags(a.instances, a.spot));
  FlagGroup output{"What to print", {}};
  output.flags.push_back({.name = "--json",
                          .value = "",
                          .help = "one JSON object on stdout, for scripts",
                          .set = into_switch(a.plan.json)});
  output.flags.push_back({.name = "--csv",
                          .value = "",
                          .help = "the front as CSV on stdout",
                          .set = into_switch(a.csv)});
  output.flags.push_back({.name = "--svg",
                          .value = "FILE",
                          .help = "draw the front into a file",
                          .set = into_text(a.svg)});
  groups.push_back(std::move(output));
  return groups;
}

}  // namespace

Command pareto_command() {
  const auto arguments = std::make_shared<ParetoArguments>();
  Command command;
  command.groups = pareto_flags(*arguments);
  command.run = [arguments] { return pareto(*arguments); };
  return command;
}

}  // namespace plait
