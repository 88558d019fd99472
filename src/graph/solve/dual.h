#pragma once

#include <vector>

#include "graph/solve/network.h"

namespace plait::solve {

// A lower bound of a network's cost, and what it says about each choice.
//
// Memory is priced: each row r gets a price p_r >= 0, and a choice pays for what it takes, so that
//   least cost >= min over choices of [cost + sum_r p_r (usage_r - room_r)].
// The right side, a problem of variables and links only, is bounded by sequential tree-reweighted
// message passing (Kolmogorov, "Convergent tree-reweighted message passing for energy
// minimization", PAMI 2006): links are shared out to chains that ascend in the order of variables,
// and each chain is minimised exactly. The prices ascend along the subgradient usage - room of a
// decoded answer, with Polyak's step.
class Dual {
 public:
  // Works on the alive variables; the loads must be tidy. The network must outlive it.
  explicit Dual(const Network& network);

  std::size_t work() const { return work_; }  // cells touched so far; a measure of time

  // One sweep forth and back under the present prices; the better bound of the two is kept.
  void sweep();
  double bound() const { return bound_; }  // after the last sweep, network.base included
  double best() const { return best_; }    // over all sweeps

  // Decodes an answer from the messages: positions of all variables, dead ones 0. With `fitting`,
  // rows are kept within their room as far as one choice after another can do it; false when a
  // variable is left without a choice.
  bool decode(bool fitting, std::vector<int>& position);

  // Moves the prices by what `position` takes above the room. `target` is a cost that the bound may
  // reach; `scale` is the part of Polyak's step that is taken.
  void step(const std::vector<int>& position, double target, double scale);
  void restore_best_prices();
  const std::vector<double>& prices() const { return price_; }
  const std::vector<double>& best_prices() const { return best_price_; }
  void set_prices(std::vector<double> prices);

  // After a sweep: any answer with choice k of v costs at least slack_base() + slack(v)[k].
  double slack_base() const { return slack_base_; }
  const double* slack(int variable) const { return hat_.data() + first_[slot_[variable]]; }
  // After a sweep: any answer with the pair costs at least bound() + pair_slack.
  double pair_slack(int link, int u_choice, int v_choice) const;

 private:
  struct Side {
    int other;  // slot at the other end
    int link;   // position in links_
  };
  struct DualLink {
    int low, high;       // slots, low < high
    std::size_t matrix;  // in cost_: [low][high], then transposed
    std::size_t to_low;  // in message_
    std::size_t to_high;
    double shift = 0;  // taken off the last message, and part of the bound
  };
  void build_links(const Network& network);
  void price_choices();
  double half_sweep(bool forth);

  const Network& network_;
  std::vector<int> slot_;           // by variable, -1 = dead
  std::vector<int> variable_;       // by slot
  std::vector<int> choices_;        // by slot
  std::vector<std::size_t> first_;  // by slot: first choice in cost arrays
  std::vector<double> weight_;      // 1 / number of chains through the slot
  std::vector<double> unary_;       // cost and price, by choice
  std::vector<double> hat_;         // the same with all messages, least 0
  std::vector<DualLink> links_;
  std::vector<int> link_slot_;         // by link of the network
  std::vector<std::vector<Side>> up_;  // links to higher slots
  std::vector<std::vector<Side>> down_;
  std::vector<double> cost_;
  std::vector<double> message_;
  std::vector<double> scratch_;
  std::size_t most_choices_ = 0;
  std::vector<double> price_, best_price_, direction_;
  double bound_ = 0;
  double best_ = 0;
  double slack_base_ = 0;
  bool swept_ = false;
  std::size_t work_ = 0;
};

// A bound as a whole cost: what rounding may have added is taken off first.
Amount whole_bound(double bound);

}  // namespace plait::solve
