#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "cluster/cluster.h"
#include "io/cluster/catalogue.h"

namespace plait {

// What the user pays, in place of the catalogue's price: of one device ("H100") wherever it is
// rented, or of one whole node ("p5.48xlarge").
struct StatedPrice {
  std::string name;
  UsdPerSecond price;
  friend bool operator==(const StatedPrice&, const StatedPrice&) = default;
};

// RequestError when a name is not known.
void set_prices(const std::vector<StatedPrice>& prices, Catalogue& catalogue);

// The nodes whose devices all have a stated price, whatever the cluster's file says of them.
// RequestError when a price is of nothing that the cluster has.
void set_prices(const std::vector<StatedPrice>& prices, const Catalogue& catalogue,
                Cluster& cluster);

}  // namespace plait
