#include "search/inside/chain_choice.h"

#include <algorithm>
#include <cmath>

#include "search/inside/priced_chain.h"

namespace plait {
namespace {

constexpr double kRounding = 1e-12;
constexpr double kSteep = 1e6;  // a price at which memory is all that counts, relative
constexpr int kMostPrices = 40;

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
      : task_(task), effort_(effort), chain_(task), ways_(chain_.ways()) {}

  std::optional<ChainAnswer> best();

 private:
  using Choice = PricedChain::Choice;
  std::optional<Choice> look(double price);
  void take(const Choice& choice);
  bool is_near() const { return best_ && best_->time - bound_ <= effort_.precision * best_->time; }
  void find_price();
  void set_rest();
  void list_labels();
  Label extended(const Label& from, int op, int v, int w) const;
  void keep(const Label& label, int op, int w, std::vector<int>& front);
  bool may_win(const Label& label, int op, int w) const;
  double promise(const Label& label, int op, int w) const {
    return label.time + price_ * label.kept + rest_[op * ways_ + w];
  }

  const ChainTask& task_;
  const ChainEffort& effort_;
  PricedChain chain_;
  int ways_;
  double price_ = 0;  // of rest_
  // At the price: what follows op o in way w, time and priced bytes.
  std::vector<double> rest_;
  std::vector<double> least_kept_;  // of the ops from each one on
  std::vector<Label> labels_;
  std::optional<ChainAnswer> best_;
  double bound_ = 0;
  double bound_price_ = 0;
  bool impossible_ = false;  // no choice fits
};

void ChainSearch::take(const Choice& choice) {
  if (!chain_.fits(choice) || (best_ && choice.time >= best_->time)) return;
  best_ = {choice.ways, choice.time, choice.memory, 0};
}

// The best choice at a price: an answer if it fits, and a bound in any case.
std::optional<ChainSearch::Choice> ChainSearch::look(double price) {
  std::optional<Choice> choice = chain_.cheapest(price);
  if (!choice) return choice;
  const double bound = choice->priced - price * (task_.memory - chain_.room());
  if (bound > bound_) {
    bound_ = bound;
    bound_price_ = price;
  }
  take(*choice);
  return choice;
}

// Between what is fastest and what needs least memory, the prices at which two neighbours on the
// convex hull of all choices cost the same: down to the pair of which only one fits, and to what
// lies between them.
void ChainSearch::find_price() {
  std::optional<Choice> fast = look(0);
  if (best_ || !fast) return;
  double time = 0;
  double bytes = 0;
  for (const std::vector<ChainWay>& ways : task_.kinds)
    for (const ChainWay& way : ways) {
      if (way.time < HUGE_VAL) time = std::max(time, way.time);
      bytes = std::max(bytes, way.kept + way.opened);
    }
  if (!(bytes > 0)) return;
  std::optional<Choice> thrifty = look(kSteep * (time + kRounding) / bytes);
  if (thrifty->kept + chain_.room() > task_.memory) impossible_ = true;
  for (int i = 0; i < kMostPrices && !impossible_ && !is_near(); ++i) {
    const double price = (thrifty->time - fast->time) / (fast->kept - thrifty->kept);
    if (!(price > 0) || !(price < HUGE_VAL)) break;
    std::optional<Choice> middle = look(price);
    const double line = fast->time + price * fast->kept;
    if (middle->time + price * middle->kept >= line - kRounding * std::abs(line)) break;
    (chain_.fits(*middle) ? thrifty : fast) = std::move(middle);
  }
  if (impossible_ || is_near()) return;
  for (const auto& mixed : {chain_.joined(*thrifty, *fast), chain_.joined(*fast, *thrifty)})
    if (mixed) take(*mixed);
}

Label ChainSearch::extended(const Label& from, int op, int v, int w) const {
  const ChainWay& way = chain_.way(op, w);
  const bool on = v >= 0 && goes_on(task_.ops[op], chain_.way(op - 1, v), way);
  Label label = from;
  label.way = w;
  label.time += way.time + (v >= 0 ? chain_.change(op - 1, v, w) : 0);
  label.kept += way.kept + (on ? 0 : way.opened);
  label.run = way.run == 0 ? 0 : (on ? from.run : 0) + way.repeated;
  label.repeated = std::max(from.repeated, label.run);
  label.transient = std::max(from.transient, way.transient);
  return label;
}

bool ChainSearch::may_win(const Label& label, int op, int w) const {
  const double room = std::max(label.peak(), chain_.room());
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

// At the price of the bound.
void ChainSearch::set_rest() {
  price_ = bound_price_;
  rest_.assign(chain_.count() * ways_, 0);
  for (int op = chain_.count() - 1; op-- > 0;)
    for (int v = 0; v < ways_; ++v) {
      double least = HUGE_VAL;
      for (int w = 0; w < ways_ && chain_.exists(op, v); ++w) {
        if (!chain_.exists(op + 1, w)) continue;
        const ChainWay& own = chain_.way(op + 1, w);
        least = std::min(least, chain_.change(op, v, w) + own.time +
                                    price_ * (own.kept + chain_.opened(op + 1, v, w)) +
                                    rest_[(op + 1) * ways_ + w]);
      }
      rest_[op * ways_ + v] = least;
    }
}

void ChainSearch::list_labels() {
  set_rest();
  least_kept_.assign(chain_.count() + 1, 0);
  for (int op = chain_.count(); op-- > 0;) {
    double least = HUGE_VAL;
    for (const ChainWay& way : task_.ways(op))
      if (way.time < HUGE_VAL) least = std::min(least, way.kept);
    least_kept_[op] = least_kept_[op + 1] + least;
  }
  std::vector<std::vector<int>> fronts(ways_);
  for (int w = 0; w < ways_; ++w)
    if (const Label label = extended({}, 0, -1, w); may_win(label, 0, w))
      keep(label, 0, w, fronts[w]);
  for (int op = 1; op < chain_.count(); ++op) {
    std::vector<std::vector<int>> next(ways_);
    for (int v = 0; v < ways_; ++v)
      for (const int from : fronts[v])
        for (int w = 0; w < ways_; ++w) {
          if (!chain_.exists(op, w)) continue;
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
  std::vector<int> ways(chain_.count());
  for (int op = chain_.count(); op-- > 0; best = labels_[best].parent) ways[op] = labels_[best].way;
  best_ = evaluate(task_, std::move(ways));
}

std::optional<ChainAnswer> ChainSearch::best() {
  find_price();
  if (!is_near() && !impossible_ && effort_.labels > 0) list_labels();
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
    const int at = static_cast<int>(op);
    const ChainWay& way = task.ways(at)[ways[op]];
    const bool on = op > 0 && goes_on(own, task.ways(at - 1)[ways[op - 1]], way);
    answer.time += way.time;
    if (op > 0 && task.ops[op - 1].change != nullptr)
      answer.time += (*task.ops[op - 1].change)[ways[op - 1] * task.ways(at).size() + ways[op]];
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
