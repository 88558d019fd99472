#include "app/clusters/pareto.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "app/request/request_error.h"
#include "io/cluster/catalogue.h"
#include "io/format/json_reader.h"
#include "report/quantities.h"
#include "search/space/sub_cluster.h"

namespace plait {
namespace {

// "A100-80GB" of "A100-80GB:8@east"
std::string kind_of(const Offer& offer) {
  return offer.name.substr(0, offer.name.find_first_of("@/:"));
}

// Every entry must be a kind of node, and another one than those before it.
void check_offers(const std::vector<Offer>& offers, const Catalogue& catalogue) {
  std::vector<std::string_view> known = device_names(catalogue);
  for (const std::string_view name : instance_names(catalogue)) known.push_back(name);
  std::set<std::string> labels;
  for (const Offer& offer : offers) {
    const std::string kind = kind_of(offer);
    const bool instance = lookup_instance(catalogue, kind) != nullptr;
    if (!instance && lookup_device(catalogue, kind) == nullptr)
      throw RequestError(
          "instances",
          fmt::format("'{}' is neither an instance nor a device type{}; `plait instances` lists "
                      "the names",
                      kind.substr(0, 60), suggestion(kind, known)));
    if (!instance && offer.name.find(':') == offer.name.npos)
      throw RequestError("instances", fmt::format("'{0}' is a device type: say how many of them a "
                                                  "node has, {0}:8:{1}-{2} for nodes of 8",
                                                  kind, offer.least, offer.most));
    if (!labels.insert(offer.label()).second)
      throw RequestError("instances",
                         fmt::format("'{}' appears twice", offer.label().substr(0, 60)));
  }
}

// Whether the request says what such a node costs.
bool is_priced(const ParetoRequest& request, const Catalogue& catalogue, const Instance* instance) {
  if (instance == nullptr) return false;
  return std::ranges::any_of(request.source.prices, [&](const StatedPrice& stated) {
    const DeviceEntry* device = lookup_device(catalogue, stated.name);
    return device != nullptr ? device->type.name == instance->device
                             : lookup_instance(catalogue, stated.name) == instance;
  });
}

// The largest cluster, and its nodes by entry; prices are those of spot instances where asked for.
LoadedSearch load_offers(const ParetoRequest& request, std::vector<MixKind>& kinds) {
  const std::vector<std::string>& files = request.source.catalogue;
  const Catalogue catalogue = files.empty() ? builtin_catalogue() : load_catalogue(files);
  check_offers(request.instances, catalogue);
  SearchRequest largest = request;
  std::string& name = largest.source.cluster;
  name.clear();
  for (const Offer& offer : request.instances)
    name += fmt::format("{}{}x{}", name.empty() ? "" : "+", offer.most, offer.name);
  LoadedSearch loaded = load_search(largest);
  Cluster& cluster = loaded.problem.cluster;
  int next = 0;
  for (const Offer& offer : request.instances) {
    MixKind kind;
    const std::string instance = kind_of(offer);
    for (int i = 0; i < offer.most; ++i, ++next) {
      kind.nodes.push_back(next);
      if (!request.spot && !offer.spot) continue;
      const Instance* known = lookup_instance(catalogue, instance);
      if (is_priced(request, catalogue, known)) continue;
      if (known == nullptr || !(known->spot > UsdPerSecond(0)))
        throw RequestError(offer.spot ? "instances" : "spot",
                           fmt::format("no spot price of '{0}' is known; say what you pay an hour: "
                                       "`price` {0}=USD",
                                       instance));
      cluster.nodes[next].price = known->spot;
    }
    for (int n = offer.least; n <= offer.most; ++n) kind.counts.push_back(n);
    kinds.push_back(std::move(kind));
  }
  PLAIT_CHECK(next == static_cast<int>(cluster.nodes.size()));
  for (std::size_t k = 0; k < kinds.size(); ++k)
    if (!(cluster.nodes[kinds[k].nodes.front()].price > UsdPerSecond(0)))
      throw RequestError("instances", fmt::format("no price of '{}' is known; give one in a "
                                                  "`catalogue` file",
                                                  request.instances[k].name));
  if (mix_count(kinds) > kMaxMixes)
    throw RequestError("instances",
                       fmt::format("these are {} mixes, more than {}; narrow the counts",
                                   grouped(static_cast<double>(mix_count(kinds))),
                                   grouped(static_cast<double>(kMaxMixes))));
  return loaded;
}

}  // namespace

Training ParetoAnswer::training(const MixPoint& point) const {
  return training_of(length.value_or(TrainingLength{1}), point.step(), point.rent);
}

Plan ParetoAnswer::plan(const MixPoint& p) const {
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

std::string ParetoAnswer::cluster(const MixPoint& point) const {
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < point.mix.size(); ++k)
    if (point.mix[k] > 0) parts.push_back(fmt::format("{}x{}", point.mix[k], instances[k].name));
  return fmt::format("{}", fmt::join(parts, "+"));
}

ParetoAnswer answer(const ParetoRequest& request, const Session& session) {
  const Planner& planner = planner_named(request.planner);
  ParetoAnswer out;
  LoadedSearch loaded = load_offers(request, out.kinds);
  check_objective(request.objective, loaded.problem);
  session.warn(loaded.warnings);
  out.instances = request.instances;
  out.problem = std::move(loaded.problem);
  out.warnings = std::move(loaded.warnings);
  out.length = length_of(request.objective, out.problem);
  SearchContext context = search_context(out.problem, loaded.options, session);
  const Stopwatch watch;
  std::optional<Seconds> enough;
  if (request.objective.deadline)
    enough = Seconds(*request.objective.deadline / training_of(*out.length, Seconds(1), {}).time);
  out.result = pareto_front(planner, context, out.kinds, enough);
  out.elapsed = watch.elapsed();
  out.interrupted = session.stop.stop_requested();
  out.objective = request.objective;
  if (!request.objective.deadline && !request.objective.budget) return out;
  Chosen chosen = choose(request.objective, out.problem, out.result.front);
  out.missed = std::move(chosen.missed);
  if (!chosen.points.empty()) out.chosen = std::move(chosen.points.front());
  return out;
}

}  // namespace plait
