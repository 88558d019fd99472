#pragma once

#include <vector>

#include "search/papers/paper_search.h"

namespace plait {

// Metis' layer load balancer. Stages get runs of units in proportion to their speed, the reciprocal
// of their time for the whole model; then units at the cuts move from the slowest stage to a
// neighbour while that makes the slowest stage faster. A stage that is overfull has its share cut
// to 0.9 of what fits, the others take over in proportion to theirs; three attempts.
class LayerBalance {
 public:
  struct Result {
    std::vector<int> cuts;
    bool fits = false;
    bool at_once = false;      // by the first attempt
    std::vector<double> fill;  // PaperSearch::fill by stage, unless it fits at once
  };

  explicit LayerBalance(PaperSearch& search) : search_(search), units_(search.units()) {}

  // Valid until the next call.
  const Result& run(const Layout& layout);

 private:
  void set_shares();
  void cut_by_share();
  void move_units();
  void judge(int attempt);
  bool shift_shares();

  UnitRange units(int stage) const { return {result_.cuts[stage], result_.cuts[stage + 1]}; }
  double time(int stage) const { return search_.time(*layout_->frames[stage], units(stage)).value; }

  PaperSearch& search_;
  const int units_;
  const Layout* layout_ = nullptr;
  int stages_ = 0;
  std::vector<double> shares_;  // of the work, by stage; they add up to 1
  std::vector<double> times_;   // of the units, by stage
  Result result_;
};

}  // namespace plait
