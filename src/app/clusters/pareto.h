#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/request/search_request.h"
#include "app/request/session.h"
#include "cost/price.h"
#include "report/table.h"
#include "search/clusters/pareto.h"

namespace plait {

// Nodes of one kind that can be rented.
struct Offer {
  std::string name;  // as the cluster shorthand takes it: "p4d.24xlarge", "A100-80GB:8@east"
  int least = 0;     // of them
  int most = 0;
  bool spot = false;  // at the spot price

  std::string label() const { return name + (spot ? ":spot" : ""); }
  friend bool operator==(const Offer&, const Offer&) = default;
};

// Find the mixes of instances that are worth their price. `source.cluster` is not used.
struct ParetoRequest : SearchRequest {
  std::vector<Offer> instances;
  bool spot = false;  // all at their spot prices
};

struct ParetoAnswer {
  std::vector<Offer> instances;
  Problem problem;          // on all that can be rented
  std::string_view target;  // whose plans were searched
  std::vector<MixKind> kinds;
  ParetoResult result;
  std::optional<TrainingLength> length;  // of the whole training
  Objective objective;
  std::optional<MixPoint> chosen;  // of the front: the best within deadline and budget
  std::string missed;              // by how much they are missed
  // Where clouds are compared: the cheapest of each that has no point on the front.
  struct CloudPoint {
    std::string cloud;
    MixPoint point;
  };
  std::vector<CloudPoint> other_clouds;
  std::vector<std::string> warnings;
  Seconds elapsed;
  bool interrupted = false;

  bool found() const { return !result.front.empty(); }
  // Time and price of the training, or of one step where its length is not known.
  Training training(const MixPoint& point) const;
  // The plan with the device ids of a cluster of this mix alone.
  Plan plan(const MixPoint& point) const;
  // The cluster of a mix in the cluster shorthand: "2xp4d.24xlarge+1xg5.24xlarge".
  std::string cluster(const MixPoint& point) const;
};

ParetoAnswer answer(const ParetoRequest& request, const Session& session);

// Why the front is empty, or no mix of it within the limits; "" when neither is so.
std::string reason(const ParetoAnswer& answer);

std::string to_json(const ParetoAnswer& answer);
std::string to_csv(const ParetoAnswer& answer);
std::string as_text(const ParetoAnswer& answer, const Style& style);
std::string as_svg(const ParetoAnswer& answer);

}  // namespace plait
