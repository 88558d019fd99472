#include "app/clusters/pareto.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "app/request/request_error.h"
#include "io/cluster/catalogue.h"
#include "io/cluster/load_cluster.h"
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

// The library that sums over devices of an offer; "" where it is not known here.
std::string collectives_of(const Offer& offer, const Catalogue& catalogue) {
  const std::string kind = kind_of(offer);
  const Instance* instance = lookup_instance(catalogue, kind);
  const std::string type = instance != nullptr ? instance->device : kind.substr(0, kind.find(':'));
  const DeviceEntry* device = lookup_device(catalogue, type);
  return device != nullptr ? device->type.collectives : "";
}

// The clouds of the offers, one word each; nothing where there is one, or where zones say how they
// are joined. Device types belong to none. Devices that do not sum with each other are in clouds of
// their own.
std::vector<std::string> clouds_of(const std::vector<Offer>& offers, const Catalogue& catalogue) {
  std::vector<std::string> clouds;
  std::vector<std::string> libraries;
  for (const Offer& offer : offers) {
    if (offer.name.find('@') != offer.name.npos) return {};
    const Instance* instance = lookup_instance(catalogue, kind_of(offer));
    clouds.push_back(instance != nullptr ? instance->provider : "");
    libraries.push_back(collectives_of(offer, catalogue));
  }
  if (std::set<std::string>(libraries.begin(), libraries.end()).size() > 1) {
    for (std::size_t k = 0; k < clouds.size(); ++k)
      clouds[k] += (clouds[k].empty() ? "" : "-") + libraries[k];
    return clouds;
  }
  const std::set<std::string> names(clouds.begin(), clouds.end());
  return names.size() - names.count("") > 1 ? clouds : std::vector<std::string>{};
}

// What was assumed between clouds that are not joined is of no interest.
void forget_links(const std::set<std::string>& clouds, std::vector<std::string>& warnings) {
  std::erase_if(warnings, [&](const std::string& warning) {
    return std::ranges::any_of(clouds, [&](const std::string& a) {
      return std::ranges::any_of(
          clouds, [&](const std::string& b) { return warning == assumed_zone_link(a, b); });
    });
  });
}

// Points of two searches that are not dominated, cheapest first.
void join(ParetoResult&& more, ParetoResult& out) {
  const auto fewer = [](const MixPoint& a, const MixPoint& b) {
    return std::pair(node_count(a.mix), a.step()) < std::pair(node_count(b.mix), b.step());
  };
  if (more.fewest && (!out.fewest || fewer(*more.fewest, *out.fewest))) {
    out.fewest = more.fewest;
    out.too_slow = more.too_slow;
  }
  out.mixes += more.mixes;
  out.planned += more.planned;
  out.evaluations += more.evaluations;
  out.cut_short |= more.cut_short;
  out.behind.insert(out.behind.end(), more.behind.begin(), more.behind.end());
  out.front.insert(out.front.end(), more.front.begin(), more.front.end());
  std::ranges::stable_sort(out.front, [](const MixPoint& a, const MixPoint& b) {
    return std::pair(a.price(), a.step()) < std::pair(b.price(), b.step());
  });
  std::vector<MixPoint> front;
  for (MixPoint& point : out.front)
    (front.empty() || point.step() < front.back().step() ? front : out.behind)
        .push_back(std::move(point));
  out.front = std::move(front);
  out.nearest = out.front.empty() && !out.nearest ? more.nearest : out.nearest;
  if (!out.front.empty()) out.nearest.reset();
}

// The front of all mixes, or of those that stay within one cloud.
ParetoResult search_offers(const Planner& planner, const SearchContext& context,
                           const std::vector<MixKind>& kinds,
                           const std::vector<std::string>& clouds, std::optional<Seconds> enough) {
  if (clouds.empty()) return pareto_front(planner, context, kinds, enough);
  SearchContext each = context;
  const Stopwatch watch;
  ParetoResult out;
  for (const std::string& cloud : std::set<std::string>(clouds.begin(), clouds.end())) {
    std::vector<MixKind> own = kinds;
    for (std::size_t k = 0; k < own.size(); ++k)
      if (clouds[k] != cloud) own[k].counts = {0};
    each.options.time_limit = context.options.time_limit - watch.elapsed();
    out.cut_short |= each.options.time_limit <= Seconds(0) || context.stop.stop_requested();
    if (!out.cut_short) join(pareto_front(planner, each, own, enough), out);
  }
  return out;
}

// The cheapest point of each cloud that has none on the front.
std::vector<ParetoAnswer::CloudPoint> other_clouds(const ParetoResult& found,
                                                   const std::vector<std::string>& clouds) {
  std::vector<ParetoAnswer::CloudPoint> out;
  const auto is_of = [&](const MixPoint& point, const std::string& cloud) {
    for (std::size_t k = 0; k < point.mix.size(); ++k)
      if (point.mix[k] > 0) return clouds[k] == cloud;
    return false;
  };
  for (const std::string& cloud : std::set<std::string>(clouds.begin(), clouds.end())) {
    const auto here = [&](const MixPoint& point) { return is_of(point, cloud); };
    if (cloud.empty() || std::ranges::any_of(found.front, here)) continue;
    const MixPoint* cheapest = nullptr;
    for (const MixPoint& point : found.behind)
      if (here(point) && (cheapest == nullptr || point.price() < cheapest->price()))
        cheapest = &point;
    if (cheapest != nullptr) out.push_back({cloud, *cheapest});
  }
  return out;
}

// "1-4" of two kinds is not one or the other: where several kinds of a cloud must be rented
// together.
std::string rented_together(const std::vector<Offer>& offers,
                            const std::vector<std::string>& clouds) {
  for (std::size_t k = 0; k < offers.size(); ++k) {
    const Offer& offer = offers[k];
    if (offer.least < 1 || offer.least == offer.most) continue;
    for (std::size_t j = 0; j < offers.size(); ++j)
      if (j != k && offers[j].least > 0 && (clouds.empty() || clouds[j] == clouds[k]))
        return fmt::format(
            "every mix has {} of {} at least beside {} of {}: {}:0-{} lets a kind be left out",
            offer.least, offer.name, offers[j].least, offers[j].name, offer.name, offer.most);
  }
  return "";
}

// The largest cluster, and its nodes by entry; prices are those of spot instances where asked for.
LoadedSearch load_offers(const ParetoRequest& request, std::vector<MixKind>& kinds,
                         std::vector<std::string>& clouds) {
  const std::vector<std::string>& files = request.source.catalogue;
  const Catalogue catalogue = files.empty() ? builtin_catalogue() : load_catalogue(files);
  check_offers(request.instances, catalogue);
  clouds = clouds_of(request.instances, catalogue);
  SearchRequest largest = request;
  largest.apart = !clouds.empty();
  std::string& name = largest.source.cluster;
  name.clear();
  const auto zone = [](const std::string& cloud) { return cloud.empty() ? "own" : cloud; };
  std::set<std::string> zones;
  for (std::size_t k = 0; k < request.instances.size(); ++k) {
    const Offer& offer = request.instances[k];
    name += fmt::format("{}{}x{}", name.empty() ? "" : "+", offer.most, offer.name);
    if (clouds.empty()) continue;
    name += "@" + zone(clouds[k]);
    zones.insert(zone(clouds[k]));
  }
  LoadedSearch loaded = load_search(largest);
  forget_links(zones, loaded.warnings);
  if (!zones.empty())
    loaded.warnings.push_back(fmt::format(
        "{} are not in one network: mixes of each are searched by themselves, and no others; zones "
        "(@name) join them",
        fmt::join(zones, ", ")));
  if (std::string together = rented_together(request.instances, clouds); !together.empty())
    loaded.warnings.push_back(std::move(together));
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
  std::vector<std::string> clouds;
  LoadedSearch loaded = load_offers(request, out.kinds, clouds);
  check_objective(request.objective, loaded.problem);
  session.warn(loaded.warnings);
  out.instances = request.instances;
  out.problem = std::move(loaded.problem);
  out.warnings = std::move(loaded.warnings);
  out.target = loaded.options.target.name;
  out.length = length_of(request.objective, out.problem);
  const SearchContext context = search_context(out.problem, loaded.options, session);
  const Stopwatch watch;
  std::optional<Seconds> enough;
  if (request.objective.deadline)
    enough = Seconds(*request.objective.deadline / training_of(*out.length, Seconds(1), {}).time);
  out.result = search_offers(planner, context, out.kinds, clouds, enough);
  out.other_clouds = other_clouds(out.result, clouds);
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
