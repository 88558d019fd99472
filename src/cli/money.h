#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cost/price.h"
#include "search/clusters/pareto.h"

namespace plait {

enum class Objective { time, cost, cost_time };

// What the user wants of time and money.
struct Wishes {
  std::optional<Objective> objective;
  std::optional<Seconds> deadline;
  std::optional<Usd> budget;
  std::optional<double> tokens;
  std::optional<double> steps;

  // Whether mixes of nodes must be compared; else the fastest plan on all nodes is the answer.
  bool need_prices() const;
  // What is best of what the limits allow: the objective, else what the one limit leaves open.
  Objective goal() const;
};

// --tokens and --steps.
std::vector<Flag> training_flags(Wishes& wishes);
// --objective, --deadline, --budget, --tokens, --steps.
FlagGroup wish_flags(Wishes& wishes);

// InputError when the wishes contradict each other or a node has no price where one is needed.
void check_wishes(const Wishes& wishes, const Problem& problem);

// Steps of the whole training; nothing when it was not said.
std::optional<double> steps_of(const Wishes& wishes, const Problem& problem);

// The points of a front that the limits allow, best first. Empty: `why` says by how much they are
// missed.
std::vector<MixPoint> wished_for(const Wishes& wishes, const Problem& problem,
                                 const std::vector<MixPoint>& front, std::string& why);

// {"steps", "time_s", "usd"}; usd is null when a price is unknown.
std::string training_json(const Training& training);
// "300,000 steps take 12.3 days and cost $20,312."
std::string training_in_words(const Training& training);
// "45.0 s", "12.3 h", "12.3 days"
std::string long_time(Seconds time);

}  // namespace plait
