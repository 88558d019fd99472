#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost/price.h"
#include "search/clusters/pareto.h"

namespace plait {

enum class Metric { time, cost, cost_time };
const std::vector<std::string_view>& metric_names();
std::optional<Metric> metric_named(std::string_view name);

// What is wanted of time and money.
struct Objective {
  std::optional<Metric> metric;
  std::optional<Seconds> deadline;  // of the whole training
  std::optional<Usd> budget;
  std::optional<double> tokens;  // of the whole training; or:
  std::optional<double> steps;
  double goodput = 1;  // part of the time that is spent in steps that count; above 0, at most 1

  // Whether mixes of nodes must be compared; else the fastest plan on all nodes is the answer.
  bool needs_prices() const;
  // What is best of what the limits allow: the metric, else what the one limit leaves open.
  Metric best_by() const;
};

// RequestError when the objective contradicts itself or a node has no price where one is needed.
void check_objective(const Objective& objective, const Problem& problem);

// Nothing when the length of the training was not said.
std::optional<TrainingLength> length_of(const Objective& objective, const Problem& problem);

// The points of a front that the limits allow, best first. When there are none, `missed` says by
// how much the limits are missed.
struct Chosen {
  std::vector<MixPoint> points;
  std::string missed;
};
Chosen choose(const Objective& objective, const Problem& problem,
              const std::vector<MixPoint>& front);

}  // namespace plait
