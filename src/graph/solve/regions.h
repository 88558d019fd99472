#pragma once

#include <random>
#include <vector>

#include "graph/solve/branch.h"
#include "graph/solve/network.h"

namespace plait::solve {

// A part of a network whose choices are free while all others stay as they are.
struct Region {
  std::vector<int> variables;
  Network network;  // its variables in that order
  Amount now = 0;   // what its present choices cost in `network`
};

// `left` is the room of each row less what `position` takes.
Region cut_region(const Network& network, const std::vector<int>& position,
                  const std::vector<Amount>& left, std::vector<int> variables);

// Draws variables that are worth deciding together.
class RegionDraw {
 public:
  explicit RegionDraw(const Network& network);
  std::vector<int> near(std::mt19937_64& random, int size);       // connected by links
  std::vector<int> same_rows(std::mt19937_64& random, int size);  // sharing memory at one time
  std::vector<int> in_order(std::mt19937_64& random, int size);   // neighbours in the program

 private:
  const Network& network_;
  std::vector<std::vector<int>> by_row_;  // variables with a load there
};

struct RegionOptions {
  std::size_t work = 0;  // in all
  std::size_t region_work = 100'000'000;
  int batch = 4;  // regions that are tried on the same answer
  int threads = 1;
  std::uint64_t seed = 0;  // other regions for another one
  Amount enough = -1;      // a cost that ends the search
  std::function<bool()> stop;
};

// Improves `position`, which must fit, by solving one region after another. Gives the work done.
std::size_t improve_by_regions(const Network& network, std::vector<int>& position,
                               const std::vector<double>& prices, const RegionOptions& options);

}  // namespace plait::solve
