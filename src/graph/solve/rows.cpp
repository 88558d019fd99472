#include "graph/solve/rows.h"

#include <algorithm>

namespace plait::solve {
namespace {

void tidy_all(Network& network) {
  for (std::size_t v = 0; v < network.variables.size(); ++v)
    if (network.variables[v].alive) network.tidy_loads(static_cast<int>(v));
}

void keep_rows(Network& network, const std::vector<char>& kept) {
  std::vector<int> to(kept.size() + 1, 0);
  std::vector<Amount> room;
  std::vector<int> names;
  for (std::size_t row = 0; row < kept.size(); ++row) {
    to[row] = static_cast<int>(room.size());
    if (!kept[row]) continue;
    room.push_back(network.room[row]);
    names.push_back(network.row_name[row]);
  }
  to[kept.size()] = static_cast<int>(room.size());
  if (room.size() == kept.size()) return;
  network.renumber_rows(to, std::move(room));
  network.row_name = std::move(names);
  tidy_all(network);
}

// From a row on, a variable has this load; -1 = none.
struct Change {
  int variable;
  int load;
};

std::vector<std::vector<Change>> changes_by_row(const Network& network) {
  std::vector<std::vector<Change>> changes(network.room.size() + 1);
  for (std::size_t v = 0; v < network.variables.size(); ++v) {
    const Variable& x = network.variables[v];
    if (!x.alive) continue;
    for (std::size_t i = 0; i < x.loads.size(); ++i) {
      changes[x.loads[i].begin].push_back({static_cast<int>(v), static_cast<int>(i)});
      const bool goes_on = i + 1 < x.loads.size() && x.loads[i + 1].begin == x.loads[i].end;
      if (!goes_on) changes[x.loads[i].end].push_back({static_cast<int>(v), -1});
    }
  }
  return changes;
}

// Compares one row with those after it.
class RowWalk {
 public:
  explicit RowWalk(const Network& network)
      : network_(network),
        changes_(changes_by_row(network)),
        now_(network.variables.size(), -1),
        more_(network.variables.size(), 0),
        less_(network.variables.size(), 0) {}

  // Marks in `kept` what row `row` implies or what implies it.
  void walk(int row, int window, std::vector<char>& kept) {
    for (const Change& change : changes_[row]) now_[change.variable] = change.load;
    if (!kept[row]) return;
    touched_.clear();
    sum_more_ = sum_less_ = 0;
    const int last = std::min(network_.rows() - 1, row + window);
    for (int other = row + 1; other <= last && kept[row]; ++other) {
      for (const Change& change : changes_[other]) apply(change);
      if (!kept[other]) continue;
      const Amount extra_room = network_.room[row] - network_.room[other];
      if (sum_more_ <= -extra_room)
        kept[other] = 0;
      else if (sum_less_ <= extra_room)
        kept[row] = 0;
    }
    for (const int v : touched_) more_[v] = less_[v] = 0;
  }

 private:
  void apply(const Change& change) {
    const int v = change.variable;
    const Variable& x = network_.variables[v];
    const Amount* before = now_[v] < 0 ? nullptr : x.loads[now_[v]].usage.data();
    const Amount* after = change.load < 0 ? nullptr : x.loads[change.load].usage.data();
    Amount more = 0, less = 0;
    if (before != after) {
      more = less = -kForbidden * 4;
      for (int k = 0; k < x.size(); ++k) {
        const Amount d = (after ? after[k] : 0) - (before ? before[k] : 0);
        more = std::max(more, d);
        less = std::max(less, -d);
      }
    }
    sum_more_ += more - more_[v];
    sum_less_ += less - less_[v];
    more_[v] = more;
    less_[v] = less;
    touched_.push_back(v);
  }

  const Network& network_;
  std::vector<std::vector<Change>> changes_;
  std::vector<int> now_;      // the load of each variable in the row that is compared
  std::vector<Amount> more_;  // the most that each variable can take more in the other row
  std::vector<Amount> less_;  // and less
  std::vector<int> touched_;
  Amount sum_more_ = 0;
  Amount sum_less_ = 0;
};

}  // namespace

void drop_slack_rows(Network& network) {
  tidy_all(network);
  std::vector<Amount> most(network.room.size() + 1, 0);
  for (const Variable& x : network.variables) {
    if (!x.alive) continue;
    for (const Load& load : x.loads) {
      const Amount usage = *std::max_element(load.usage.begin(), load.usage.end());
      most[load.begin] += usage;
      most[load.end] -= usage;
    }
  }
  std::vector<char> kept(network.room.size(), 1);
  Amount now = 0;
  for (std::size_t row = 0; row < kept.size(); ++row) {
    now += most[row];
    if (network.room[row] < 0) network.impossible = true;
    if (now <= network.room[row]) kept[row] = 0;
  }
  keep_rows(network, kept);
}

void drop_implied_rows(Network& network, int window) {
  tidy_all(network);
  std::vector<char> kept(network.room.size(), 1);
  RowWalk walk(network);
  for (int row = 0; row < network.rows(); ++row) walk.walk(row, window, kept);
  keep_rows(network, kept);
}

}  // namespace plait::solve
