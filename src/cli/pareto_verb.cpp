#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <set>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/money.h"
#include "cli/plan_arguments.h"
#include "cli/plan_report.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "cost/engine.h"
#include "io/cluster/catalogue.h"
#include "io/cluster/device_json.h"
#include "io/format/csv.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"
#include "io/plan/plan_json.h"
#include "plan/describe.h"
#include "report/pareto_svg.h"
#include "report/quantities.h"
#include "report/summary.h"
#include "search/clusters/sub_cluster.h"

namespace plait {
namespace {

constexpr int kMostNodes = 10'000;  // of one entry

// One entry of --instances.
struct Offer {
  std::string name;   // as the cluster shorthand takes it: "p4d.24xlarge", "A100-80GB:8@east"
  std::string label;  // the same, with ":spot" where it is
  int least = 0;
  int most = 0;
  bool spot = false;
};

struct ParetoArguments : PlanArguments {
  std::vector<Offer> offers;
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
  offer.label = offer.name + (offer.spot ? ":spot" : "");
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

// Every entry must be a kind of node, and another one than those before it.
void check_offers(const std::vector<Offer>& offers, const Catalogue& catalogue) {
  std::vector<std::string_view> known = device_names(catalogue);
  for (const std::string_view name : instance_names(catalogue)) known.push_back(name);
  std::set<std::string> labels;
  for (const Offer& offer : offers) {
    const std::string kind = offer.name.substr(0, offer.name.find_first_of("@/:"));
    const bool instance = lookup_instance(catalogue, kind) != nullptr;
    if (!instance && lookup_device(catalogue, kind) == nullptr)
      throw InputError("--instances",
                       fmt::format("'{}' is no instance or device type{}; `plait instances` lists "
                                   "the names",
                                   kind.substr(0, 60), suggestion(kind, known)));
    if (!instance && offer.name.find(':') == offer.name.npos)
      throw InputError("--instances", fmt::format("'{0}' is a device type: say how many of them a "
                                                  "node has, {0}:8:{1}-{2} for nodes of 8",
                                                  kind, offer.least, offer.most));
    if (!labels.insert(offer.label).second)
      throw InputError("--instances", fmt::format("'{}' appears twice", offer.label.substr(0, 60)));
  }
}

// The largest cluster, and its nodes by entry; prices are those of spot instances where asked for.
LoadedProblem load_offers(ParetoArguments& a, std::vector<MixKind>& kinds) {
  const Catalogue catalogue =
      a.catalogue.empty() ? builtin_catalogue() : load_catalogue(a.catalogue);
  check_offers(a.offers, catalogue);
  a.cluster.clear();
  for (const Offer& offer : a.offers)
    a.cluster += fmt::format("{}{}x{}", a.cluster.empty() ? "" : "+", offer.most, offer.name);
  LoadedProblem loaded = load_problem(a);
  Cluster& cluster = loaded.problem.cluster;
  int next = 0;
  for (const Offer& offer : a.offers) {
    MixKind kind;
    const std::string instance = offer.name.substr(0, offer.name.find_first_of("@/:"));
    for (int i = 0; i < offer.most; ++i, ++next) {
      kind.nodes.push_back(next);
      if (!a.spot && !offer.spot) continue;
      const Instance* known = lookup_instance(catalogue, instance);
      if (known == nullptr || !(known->spot > UsdPerSecond(0)))
        throw InputError(offer.spot ? "--instances" : "--spot",
                         fmt::format("no spot price of '{}' is known; give one in a --catalogue "
                                     "file",
                                     instance));
      cluster.nodes[next].price = known->spot;
    }
    for (int n = offer.least; n <= offer.most; ++n) kind.counts.push_back(n);
    kinds.push_back(std::move(kind));
  }
  PLAIT_CHECK(next == static_cast<int>(cluster.nodes.size()));
  for (std::size_t k = 0; k < kinds.size(); ++k)
    if (!(cluster.nodes[kinds[k].nodes.front()].price > UsdPerSecond(0)))
      throw InputError("--instances", fmt::format("no price of '{}' is known; give one in a "
                                                  "--catalogue file",
                                                  a.offers[k].name));
  if (mix_count(kinds) > kMaxMixes)
    throw InputError("--instances",
                     fmt::format("these are {} mixes, more than {}; narrow the counts",
                                 grouped(static_cast<double>(mix_count(kinds))),
                                 grouped(static_cast<double>(kMaxMixes))));
  return loaded;
}

struct Front {
  const ParetoArguments& arguments;
  const Problem& problem;
  const std::vector<MixKind>& kinds;
  ParetoResult result;
  Seconds elapsed;
  bool interrupted = false;
  std::optional<double> steps;

  Training training(const MixPoint& p) const {
    return training_of(steps.value_or(1), p.step(), p.rent);
  }
  // The plan with the device ids of a cluster of this mix alone.
  Plan plan(const MixPoint& p) const {
    const Cluster& whole = problem.cluster;
    std::vector<bool> rented(whole.nodes.size());
    for (const Stage& stage : p.best.plan.stages)
      for (const DeviceId id : stage.devices) rented[whole.device(id).node] = true;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      int missing = p.mix[k];
      for (const int node : kinds[k].nodes) missing -= rented[node] ? 1 : 0;
      for (const int node : kinds[k].nodes)
        if (!rented[node] && missing-- > 0) rented[node] = true;
    }
    std::vector<bool> kept;
    for (const Device& device : whole.devices) kept.push_back(rented[device.node]);
    const SubCluster part = keep_devices(whole, kept);
    Plan plan = p.best.plan;
    for (Stage& stage : plan.stages)
      for (DeviceId& id : stage.devices) id = DeviceId(part.position[index(id)]);
    return plan;
  }
  // What --cluster takes: "2xp4d.24xlarge+1xg5.24xlarge"
  std::string cluster(const MixPoint& p) const {
    std::vector<std::string> parts;
    for (std::size_t k = 0; k < p.mix.size(); ++k)
      if (p.mix[k] > 0) parts.push_back(fmt::format("{}x{}", p.mix[k], arguments.offers[k].name));
    return fmt::format("{}", fmt::join(parts, "+"));
  }
  // "2 p4d.24xlarge + 1 g5.24xlarge"
  std::string mix(const MixPoint& p) const {
    std::vector<std::string> parts;
    for (std::size_t k = 0; k < p.mix.size(); ++k)
      if (p.mix[k] > 0) parts.push_back(fmt::format("{} {}", p.mix[k], arguments.offers[k].label));
    return fmt::format("{}", fmt::join(parts, " + "));
  }
};

std::string as_text(const Front& front) {
  const Style style = style_of(stdout);
  Table table(
      {{front.steps ? "price" : "$/step"},
       {front.steps ? "time" : "step"},
       {front.steps ? "step" : "", Align::right, 2},
       {"$/hour", Align::right, 1},
       {front.problem.model.sequence_length > 1 ? "tokens/s" : "samples/s", Align::right, 3},
       {"instances", Align::left},
       {"plan", Align::left}});
  for (const MixPoint& p : front.result.front) {
    const Training all = front.training(p);
    table.row({in_words(all.price), front.steps ? long_time(all.time) : in_words(all.time),
               front.steps ? in_words(p.step()) : "",
               fmt::format("{:.2f}", in_usd_per_hour(p.rent)),
               grouped(tokens_per_second(front.problem, p.step())), front.mix(p),
               short_description(p.best.plan)});
  }
  const ParetoResult& r = front.result;
  std::string out = style.bold(summary_of(front.problem.model)) + "\n" +
                    paragraph(summary_of(front.problem), style) + "\n" + table.str(style) + "\n";
  std::string note = fmt::format(
      "Mixes of instances: {}. No other is both as cheap and as fast; {} could be, and were "
      "planned, "
      "in {}.",
      grouped(static_cast<double>(r.mixes)), grouped(static_cast<double>(r.planned)),
      in_words(front.elapsed));
  if (r.cut_short) note += " Cut short: the front so far.";
  return out + paragraph(note, style);
}

std::string point_json(const Front& front, const MixPoint& p, bool with_plan) {
  JsonObject instances;
  for (std::size_t k = 0; k < p.mix.size(); ++k)
    instances.number(front.arguments.offers[k].label, p.mix[k]);
  JsonObject object;
  object.json("instances", instances.str())
      .number("usd_per_hour", in_usd_per_hour(p.rent))
      .number("step_s", p.step().value)
      .number("usd_per_step", p.price().value)
      .number("tokens_per_s", tokens_per_second(front.problem, p.step()));
  if (front.steps) object.json("training", training_json(front.training(p)));
  object.text("cluster", front.cluster(p)).text("describe", describe(front.plan(p)));
  if (with_plan) object.json("plan", plan_to_json(front.plan(p)));
  return object.str();
}

std::string as_json(const Front& front, const std::vector<std::string>& warnings) {
  std::vector<std::string> points;
  std::vector<std::string> behind;
  std::vector<std::string> sentences;
  for (const MixPoint& p : front.result.front) points.push_back(point_json(front, p, true));
  for (const MixPoint& p : front.result.behind) behind.push_back(point_json(front, p, false));
  for (const std::string& warning : warnings) sentences.push_back(json_text(warning));
  return lay_out_json(JsonObject()
                          .json("front", json_list(points))
                          .json("behind", json_list(behind))
                          .number("mixes", static_cast<double>(front.result.mixes))
                          .number("planned", static_cast<double>(front.result.planned))
                          .number("evaluations", static_cast<double>(front.result.evaluations))
                          .number("search_s", front.elapsed.value)
                          .boolean("cut_short", front.result.cut_short)
                          .json("warnings", json_list(sentences))
                          .text("model", front.problem.model.name)
                          .str());
}

std::string as_csv(const Front& front) {
  std::vector<std::string> header;
  for (const Offer& offer : front.arguments.offers) header.push_back(offer.label);
  for (const char* name : {"usd_per_hour", "step_s", "usd_per_step"}) header.emplace_back(name);
  if (front.steps)
    for (const char* name : {"steps", "training_s", "training_usd"}) header.emplace_back(name);
  header.emplace_back("plan");
  std::string out = csv_line(header);
  for (const MixPoint& p : front.result.front) {
    std::vector<std::string> cells;
    for (const int count : p.mix) cells.push_back(std::to_string(count));
    for (const double value : {in_usd_per_hour(p.rent), p.step().value, p.price().value})
      cells.push_back(json_number(value));
    const Training all = front.training(p);
    if (front.steps)
      for (const double value : {all.steps, all.time.value, all.price.value})
        cells.push_back(json_number(value));
    cells.push_back(describe(front.plan(p)));
    out += csv_line(cells);
  }
  return out;
}

std::string as_svg(const Front& front) {
  constexpr double kDay = 24 * kSecondsPerHour;
  Chart chart{fmt::format("{}: price and time of {}", front.problem.model.name,
                          front.steps ? "the training" : "a step"),
              front.steps ? "price, USD" : "price of a step, USD",
              front.steps ? "time, days" : "time of a step, s",
              {}};
  const auto add = [&](const MixPoint& p, bool on_front) {
    const Training all = front.training(p);
    chart.points.push_back({all.price.value, front.steps ? all.time.value / kDay : all.time.value,
                            on_front, front.mix(p)});
  };
  for (const MixPoint& p : front.result.behind) add(p, false);
  for (const MixPoint& p : front.result.front) add(p, true);
  return chart_svg(chart);
}

int pareto(ParetoArguments arguments) {
  if (arguments.json && arguments.csv) throw InputError("--csv", "contradicts --json; give one");
  check_output(arguments.svg);
  const Planner& planner = named_planner(arguments.planner);
  std::vector<MixKind> kinds;
  LoadedProblem loaded = load_offers(arguments, kinds);
  const Problem& problem = loaded.problem;
  check_wishes(arguments.wishes, problem);
  if (std::string note = resolve_pins(arguments, problem.model); !note.empty())
    loaded.warnings.push_back(std::move(note));
  if (!arguments.json)
    for (const std::string& warning : loaded.warnings) warn(warning);
  Front front{arguments, problem, kinds, {}, {}, false, steps_of(arguments.wishes, problem)};
  const auto begin = std::chrono::steady_clock::now();
  {
    Interrupt interrupt;
    Progress progress;
    const SearchContext context{
        .problem = problem,
        .options = arguments.search,
        .stop = interrupt.token(),
        .on_improvement = {},
        .on_progress = [&](double fraction) { progress.advanced(fraction); }};
    front.result = pareto_front(planner, context, kinds);
    front.interrupted = interrupt.happened();
  }
  front.elapsed =
      Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  if (!arguments.svg.empty()) write_text_file(arguments.svg, as_svg(front));
  const bool empty = front.result.front.empty();
  if (arguments.json) print(as_json(front, loaded.warnings));
  if (arguments.csv) print(as_csv(front));
  if (!arguments.json && !arguments.csv && !empty) print(as_text(front));
  if (!empty) return kDone;
  complain(front.result.cut_short
               ? "cut short before any plan was found; give more --time-limit"
               : fmt::format("{} fits on none of these mixes; plait plan says what is missing",
                             problem.model.name));
  return front.interrupted ? kInterrupted : kNothingFits;
}

// The flags of plait plan, but the cluster is to be found.
std::vector<FlagGroup> pareto_flags(ParetoArguments& a) {
  std::vector<FlagGroup> groups = plan_flags(a);
  for (FlagGroup& group : groups)
    std::erase_if(group.flags, [](const Flag& flag) {
      static const std::vector<std::string> kNone{
          "--cluster",  "--clusterfile", "--device", "--top",    "--output", "--objective",
          "--deadline", "--budget",      "--json",   "--tokens", "--steps",  "--metis-args"};
      return std::ranges::find(kNone, flag.name) != kNone.end();
    });
  std::erase_if(groups, [](const FlagGroup& group) { return group.flags.empty(); });
  FlagGroup offers{"What can be rented",
                   {{.name = "--instances",
                     .value = "LIST",
                     .help = "p4d.24xlarge:0-8,g5.24xlarge@east:4: instances (plait instances) and "
                             "how many of each at most; add :spot for the spot price",
                     .set = into_offers(a.offers),
                     .required = true},
                    {.name = "--spot",
                     .value = "",
                     .help = "all at their spot prices",
                     .set = into_switch(a.spot)}}};
  groups.insert(groups.begin() + 1, std::move(offers));
  FlagGroup output{"What to print", training_flags(a.wishes)};
  output.flags.push_back({.name = "--json",
                          .value = "",
                          .help = "one JSON object on stdout, for scripts",
                          .set = into_switch(a.json)});
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
  arguments->search.threads = usual_threads();
  Command command;
  command.groups = pareto_flags(*arguments);
  command.run = [arguments] { return pareto(*arguments); };
  return command;
}

}  // namespace plait
