#include "search/space/least_recompute.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "model/layers.h"

namespace plait {
namespace {

class LeastRecompute {
 public:
  LeastRecompute(const Space& space, const SpanFrame& frame, const RunInFlight& run)
      : space_(space), frame_(frame), run_(run) {
    const Model& model = space.problem().model;
    ends_.push_back(run.units.begin);
    for (int u = run.units.begin + 1; u < run.units.end; ++u)
      if (model.unit(u).starts_layer) ends_.push_back(u);
    ends_.push_back(run.units.end);
    const auto has = [&](Recompute kind) {
      return std::ranges::find(space.recomputes(), kind) != space.recomputes().end();
    };
    has_selective_ = has(Recompute::selective);
    has_full_ = has(Recompute::full);
  }

  std::optional<UnitsRecomputed> best() {
    const int layers = static_cast<int>(ends_.size()) - 1;
    const int most_full = has_full_ ? layers : 0;
    int full = least(0, most_full, [&](int f) { return fits_with(f, most_selective(f)); });
    Seconds best_time(HUGE_VAL);
    std::optional<UnitsRecomputed> best;
    for (; full <= most_full && time(full, 0) < best_time; ++full) {
      const int selective =
          least(0, most_selective(full), [&](int s) { return fits_with(full, s); });
      if (selective > most_selective(full)) continue;
      const Seconds own = time(full, selective);
      if (own >= best_time) continue;
      best_time = own;
      best = in_whole(full, selective);
    }
    return best;
  }

 private:
  int most_selective(int full) const {
    return has_selective_ ? static_cast<int>(ends_.size()) - 1 - full : 0;
  }

  // The least number that is right, or one more than the most. Numbers above it are right as well,
  // but the first may be an exception: recomputing one layer needs room to repeat it.
  template <typename IsRight>
  static int least(int from, int most, const IsRight& is_right) {
    if (is_right(from)) return from;
    int bad = from;
    int good = most + 1;
    while (good - bad > 1) {
      const int middle = (good + bad) / 2;
      (is_right(middle) ? good : bad) = middle;
    }
    return good;
  }

  UnitsRecomputed of(int full, int selective) const {
    return {ends_[full] - run_.units.begin, ends_[full + selective] - ends_[full]};
  }
  bool fits_with(int full, int selective) const {
    return fits(space_, frame_, run_, of(full, selective));
  }
  Seconds time(int full, int selective) const {
    return frame_.time(of(full, selective).of(run_.units)).total();
  }

  // Where only embeddings and heads are left, which are never recomputed, all are said to be.
  UnitsRecomputed in_whole(int full, int selective) const {
    const Model& model = space_.problem().model;
    for (int u = ends_[full + selective]; u < run_.units.end; ++u)
      if (is_layer(model.unit(u))) return of(full, selective);
    UnitsRecomputed all = of(full, selective);
    (selective > 0 ? all.selective : all.full) = UnitsRecomputed::kAll;
    return all;
  }

  const Space& space_;
  const SpanFrame& frame_;
  const RunInFlight& run_;
  std::vector<int> ends_;  // where the first l layers of the run end
  bool has_selective_ = false;
  bool has_full_ = false;
};

}  // namespace

bool fits(const Space& space, const SpanFrame& frame, const RunInFlight& run,
          const UnitsRecomputed& recompute) {
  const double tied = space.tied_copies().of(run.units);
  const UnitsRecomputed::Runs runs = recompute.of(run.units);
  for (int r = 0; r < frame.replica_count(); ++r)
    if (frame.memory(r, runs, tied).spare(run.live, run.waiting) < Bytes(0)) return false;
  return true;
}

std::optional<UnitsRecomputed> least_recompute(const Space& space, const SpanFrame& frame,
                                               const RunInFlight& run) {
  return LeastRecompute(space, frame, run).best();
}

}  // namespace plait
