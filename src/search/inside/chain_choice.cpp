#include "search/inside/chain_choice.h"

#include <algorithm>
#include <cmath>

namespace plait {
namespace {

constexpr double kRounding = 1e-12;
constexpr double kSteep = 1e6;  // a price at which memory is all that counts, relative
constexpr int kMostPrices = 40;

bool goes_on(const ChainOp& op, const ChainWay& before, const ChainWay& own) {
  return own.run != 0 && own.run == before.run && !op.starts_layer;
}

// What a beginning of the chain amounts to.
struct Label {
  double time = 0;
  double kept = 0;
  double run = 0;        // repeated bytes of the run that may go on
  double repeated = 0;   // of the largest run
  double transient = 0;  // largest
  int parent = -1;
  int way = 0;

  double peak() const { return repeated + transient; }
};

class ChainSearch {
 public:
  ChainSearch(const ChainTask& task, const ChainEffort& effort)
      : task_(task),
        effort_(effort),
        ways_(static_cast<int>(task.ops.front().ways.size())),
        rest_(task.ops.size() * ways_),
        next_(task.ops.size() * ways_) {}

  std::optional<ChainAnswer> best();

 private:
  int count() const { return static_cast<int>(task_.ops.size()); }
  // Ops have as many ways as the one that has most; the others take forever.
  bool exists(int op, int w) const { return task_.ops[op].ways[w].time < HUGE_VAL; }
  double change(int op, int v, int w) const {
    const std::vector<double>* change = task_.ops[op].change;
    return change == nullptr ? 0 : (*change)[v * ways_ + w];
  }
  // Bytes of way w of an op after way v of the one before it.
  double opened(int op, int v, int w) const {
    const ChainWay& own = task_.ops[op].ways[w];
    const bool on = v >= 0 && goes_on(task_.ops[op], task_.ops[op - 1].ways[v], own);
    return on ? 0 : own.opened;
  }
  double kept_of(const std::vector<int>& ways) const;
  void look(double price);
  void find_price();
  void list_labels();
  Label extended(const Label& from, int op, int v, int w) const;
  void keep(const Label& label, int op, int w, std::vector<int>& front);
  bool may_win(const Label& label, int op, int w) const;
  double promise(const Label& label, int op, int w) const {
    return label.time + price_ * label.kept + rest_[op * ways_ + w];
  }

  const ChainTask& task_;
  const ChainEffort& effort_;
  int ways_;
  double price_ = 0;
  // At the price: what follows op o in way w, time and priced bytes; and the way of the next op.
  std::vector<double> rest_;
  std::vector<int> next_;
  std::vector<double> least_kept_;  // of the ops from each one on
  std::vector<Label> labels_;
  std::optional<ChainAnswer> best_;
  double bound_ = 0;
  double bound_price_ = 0;
  // What was looked at last.
  struct Sum {
    double time = 0;
    double kept = 0;
    bool fits = false;
  };
  std::optional<Sum> last_;
  bool impossible_ = false;  // no choice fits
};

double ChainSearch::kept_of(const std::vector<int>& ways) const {
  double kept = 0;
  for (int op = 0; op < count(); ++op)
    kept += task_.ops[op].ways[ways[op]].kept + opened(op, op > 0 ? ways[op - 1] : -1, ways[op]);
  return kept;
}

// The best choice at a price: an answer if it fits, and a bound in any case.
void ChainSearch::look(double price) {
  price_ = price;
  const int last = count() - 1;
  std::fill_n(rest_.begin() + last * ways_, ways_, 0.0);
  for (int op = last; op-- > 0;)
    for (int v = 0; v < ways_; ++v) {
      double least = HUGE_VAL;
      for (int w = 0; w < ways_ && exists(op, v); ++w) {
        if (!exists(op + 1, w)) continue;
        const ChainWay& way = task_.ops[op + 1].ways[w];
        const double sum = change(op, v, w) + way.time + price * (way.kept + opened(op + 1, v, w)) +
                           rest_[(op + 1) * ways_ + w];
        if (sum >= least) continue;
        least = sum;
        next_[op * ways_ + v] = w;
      }
      rest_[op * ways_ + v] = least;
    }
  int first = 0;
  double value = HUGE_VAL;
  for (int w = 0; w < ways_; ++w) {
    const ChainWay& way = task_.ops[0].ways[w];
    const double own = way.time + price * (way.kept + way.opened) + rest_[w];
    if (own < value) {
      value = own;
      first = w;
    }
  }
  if (!(value < HUGE_VAL)) return;
  const double bound = value - price * (task_.memory - task_.at_least);
  if (bound > bound_) {
    bound_ = bound;
    bound_price_ = price;
  }
  std::vector<int> ways{first};
  for (int op = 0; op < last; ++op) ways.push_back(next_[op * ways_ + ways.back()]);
  ChainAnswer answer = evaluate(task_, std::move(ways));
  last_ = {answer.time, kept_of(answer.ways), answer.memory <= task_.memory};
  if (last_->fits && (!best_ || answer.time < best_->time)) best_ = std::move(answer);
}

// Between what is fastest and what needs least memory, the prices at which two neighbours on the
// convex hull of all choices cost the same: down to the pair of which only one fits.
void ChainSearch::find_price() {
  look(0);
  if (best_ || !last_) return;
  Sum fast = *last_;
  double time = 0;
  double bytes = 0;
  for (const ChainOp& op : task_.ops)
    for (const ChainWay& way : op.ways) {
      if (way.time < HUGE_VAL) time = std::max(time, way.time);
      bytes = std::max(bytes, way.kept + way.opened);
    }
  if (!(bytes > 0)) return;
  look(kSteep * (time + kRounding) / bytes);
  Sum thrifty = *last_;
  if (thrifty.kept + task_.at_least > task_.memory) impossible_ = true;
  for (int i = 0; i < kMostPrices && !impossible_; ++i) {
    if (best_ && best_->time - bound_ <= effort_.precision * best_->time) return;
    const double price = (thrifty.time - fast.time) / (fast.kept - thrifty.kept);
    if (!(price > 0) || !(price < HUGE_VAL)) return;
    look(price);
    const double line = fast.time + price * fast.kept;
    if (last_->time + price * last_->kept >= line - kRounding * std::abs(line)) return;
    (last_->fits ? thrifty : fast) = *last_;
  }
}

Label ChainSearch::extended(const Label& from, int op, int v, int w) const {
  const ChainWay& way = task_.ops[op].ways[w];
  const bool on = v >= 0 && goes_on(task_.ops[op], task_.ops[op - 1].ways[v], way);
  Label label = from;
  label.way = w;
  label.time += way.time + (v >= 0 ? change(op - 1, v, w) : 0);
  label.kept += way.kept + (on ? 0 : way.opened);
  label.run = way.run == 0 ? 0 : (on ? from.run : 0) + way.repeated;
  label.repeated = std::max(from.repeated, label.run);
  label.transient = std::max(from.transient, way.transient);
  return label;
}

bool ChainSearch::may_win(const Label& label, int op, int w) const {
  const double room = std::max(label.peak(), task_.at_least);
  if (label.kept + least_kept_[op + 1] + room > task_.memory) return false;
  if (!best_) return label.time < HUGE_VAL;
  const double bound = promise(label, op, w) - price_ * (task_.memory - room);
  return bound < best_->time * (1 - kRounding) - effort_.precision * best_->time;
}

void ChainSearch::keep(const Label& label, int op, int w, std::vector<int>& front) {
  const auto as_good = [](const Label& a, const Label& b) {
    return a.time <= b.time && a.kept <= b.kept && a.run <= b.run && a.repeated <= b.repeated &&
           a.transient <= b.transient;
  };
  for (const int other : front)
    if (as_good(labels_[other], label)) return;
  std::erase_if(front, [&](int other) { return as_good(label, labels_[other]); });
  labels_.push_back(label);
  front.push_back(static_cast<int>(labels_.size()) - 1);
  if (front.size() <= effort_.labels) return;
  front.erase(std::ranges::max_element(
      front, {}, [&](int l) { return promise(labels_[l], op, w) + price_ * labels_[l].peak(); }));
}

void ChainSearch::list_labels() {
  look(bound_price_);
  least_kept_.assign(count() + 1, 0);
  for (int op = count(); op-- > 0;) {
    double least = HUGE_VAL;
    for (const ChainWay& way : task_.ops[op].ways)
      if (way.time < HUGE_VAL) least = std::min(least, way.kept);
    least_kept_[op] = least_kept_[op + 1] + least;
  }
  std::vector<std::vector<int>> fronts(ways_);
  for (int w = 0; w < ways_; ++w)
    if (const Label label = extended({}, 0, -1, w); may_win(label, 0, w))
      keep(label, 0, w, fronts[w]);
  for (int op = 1; op < count(); ++op) {
    std::vector<std::vector<int>> next(ways_);
    for (int v = 0; v < ways_; ++v)
      for (const int from : fronts[v])
        for (int w = 0; w < ways_; ++w) {
          if (!exists(op, w)) continue;
          Label label = extended(labels_[from], op, v, w);
          label.parent = from;
          if (may_win(label, op, w)) keep(label, op, w, next[w]);
        }
    fronts.swap(next);
  }
  int best = -1;
  for (const std::vector<int>& front : fronts)
    for (const int l : front)
      if (best < 0 || labels_[l].time < labels_[best].time) best = l;
  if (best < 0 || (best_ && labels_[best].time >= best_->time)) return;
  std::vector<int> ways(count());
  for (int op = count(); op-- > 0; best = labels_[best].parent) ways[op] = labels_[best].way;
  best_ = evaluate(task_, std::move(ways));
}

std::optional<ChainAnswer> ChainSearch::best() {
  find_price();
  const bool near = best_ && best_->time - bound_ <= effort_.precision * best_->time;
  if (!near && !impossible_ && effort_.labels > 0) list_labels();
  if (best_) best_->bound = bound_;
  return best_;
}

}  // namespace

ChainAnswer evaluate(const ChainTask& task, std::vector<int> ways) {
  ChainAnswer answer;
  double run = 0;
  double repeated = 0;
  double transient = 0;
  for (std::size_t op = 0; op < task.ops.size(); ++op) {
    const ChainOp& own = task.ops[op];
    const ChainWay& way = own.ways[ways[op]];
    const bool on = op > 0 && goes_on(own, task.ops[op - 1].ways[ways[op - 1]], way);
    answer.time += way.time;
    if (op > 0 && task.ops[op - 1].change != nullptr)
      answer.time += (*task.ops[op - 1].change)[ways[op - 1] * own.ways.size() + ways[op]];
    answer.memory += way.kept + (on ? 0 : way.opened);
    run = way.run == 0 ? 0 : (on ? run : 0) + way.repeated;
    repeated = std::max(repeated, run);
    transient = std::max(transient, way.transient);
  }
  answer.memory += std::max(repeated + transient, task.at_least);
  answer.ways = std::move(ways);
  return answer;
}

std::optional<ChainAnswer> choose_in_chain(const ChainTask& task, const ChainEffort& effort) {
  if (task.ops.empty()) return std::nullopt;
  return ChainSearch(task, effort).best();
}

}  // namespace plait
