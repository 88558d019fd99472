#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "app/clusters/pareto.h"
#include "app/request/output_file.h"
#include "base/error.h"
#include "cli/flags/field_flags.h"
#include "cli/flags/plan_arguments.h"
#include "cli/terminal/terminal.h"
#include "cli/verbs/console_session.h"
#include "io/format/text_file.h"

namespace plait {
namespace {

constexpr int kMostNodes = 10'000;  // of one entry

struct ParetoArguments {
  PlanArguments plan;
  std::vector<Offer> instances;
  bool spot = false;
  bool csv = false;
  std::string svg;
};

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// "p4d.24xlarge:0-8", "g5.24xlarge@east:4", "p4d.24xlarge:2-4:spot"
Offer read_offer(const std::string& flag, std::string_view text) {
  const auto fault = [&] {
    return InputError(
        flag, fmt::format("must be like p4d.24xlarge:0-8 (from none to 8 of them), "
                          "g5.24xlarge@east:4 (up to 4, in zone east) or p4d.24xlarge:0-8:spot, is "
                          "'{}'",
                          text.substr(0, 60)));
  };
  Offer offer;
  std::string_view rest = without_blanks(text);
  if (rest.ends_with(":spot")) {
    offer.spot = true;
    rest.remove_suffix(5);
  }
  const std::size_t colon = rest.rfind(':');
  if (colon == rest.npos || colon == 0) throw fault();
  offer.name = without_blanks(rest.substr(0, colon));
  const std::string_view range = without_blanks(rest.substr(colon + 1));
  const std::size_t dash = range.find('-');
  const auto number = [&](std::string_view digits) {
    int value = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || value < 0)
      throw fault();
    return value;
  };
  if (dash != range.npos) offer.least = number(range.substr(0, dash));
  offer.most = number(dash == range.npos ? range : range.substr(dash + 1));
  if (offer.least > offer.most || offer.most < 1 || offer.most > kMostNodes)
    throw InputError(flag, fmt::format("counts must ascend, from 0 to at most {}, in '{}'",
                                       kMostNodes, text.substr(0, 60)));
  return offer;
}

Setter into_offers(std::vector<Offer>& into) {
  return [&into](const std::string& flag, const std::string& text) {
    into.clear();
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      into.push_back(read_offer(flag, std::string_view(text).substr(begin, comma - begin)));
      begin = comma + 1;
    }
  };
}

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
  if (answer.found()) return kDone;
  complain(in_flags(reason(answer)));
  return answer.interrupted ? kInterrupted : kNothingFits;
}

// The flags of plait plan, but the cluster is to be found.
std::vector<FlagGroup> pareto_flags(ParetoArguments& a) {
  std::vector<FlagGroup> groups = without_flags(
      plan_flags(a.plan),
      {"--cluster", "--clusterfile", "--device", "--top", "--output", "--objective", "--deadline",
       "--budget", "--json", "--tokens", "--steps", "--metis-args", "--cost-model", "--format"});
  FlagGroup offers{"What can be rented",
                   {{.name = "--instances",
                     .value = "LIST",
                     .help = "p4d.24xlarge:0-8,g5.24xlarge@east:4: instances (plait instances) and "
                             "how many of each at most; add :spot for the spot price",
                     .set = into_offers(a.instances),
                     .required = true},
                    {.name = "--spot",
                     .value = "",
                     .help = "all at their spot prices",
                     .set = into_switch(a.spot)}}};
  groups.insert(groups.begin() + 1, std::move(offers));
  FlagGroup output{"What to print", training_flags(a.plan.request.objective)};
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
