#include "validation/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"

namespace plait {
namespace {

constexpr int kSteps = 24;          // of a factor of two
constexpr int kMostSteps = 24;      // of kMostFactor
constexpr std::size_t kParts = 10;  // that many runs are left out in

using Point = std::vector<int>;  // steps of each constant

double factor_of(int steps) { return std::exp2(static_cast<double>(steps) / kSteps); }

// Part p of `parts` leaves out the runs p, p + parts, ..; no part leaves out none.
struct Fold {
  std::size_t part = 0;
  std::size_t parts = 0;
  bool leaves_out(std::size_t run) const { return parts > 0 && run % parts == part; }
};

double mean_size(const std::vector<double>& errors, const Fold& fold, bool left_out) {
  double sum = 0;
  int count = 0;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (fold.leaves_out(i) != left_out) continue;
    sum += std::abs(errors[i]);
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

struct Stopped {};

// Errors at points, each computed once. The first point is not refused.
class Landscape {
 public:
  Landscape(const ErrorsAt& errors_at, const std::function<bool()>& stop)
      : errors_at_(errors_at), stop_(stop) {}

  const std::vector<double>& at(const Point& point) {
    const auto found = known_.find(point);
    if (found != known_.end()) return found->second;
    if (!known_.empty() && stop_()) throw Stopped();
    std::vector<double> factors;
    for (const int steps : point) factors.push_back(factor_of(steps));
    const std::vector<double>& errors = known_.emplace(point, errors_at_(factors)).first->second;
    PLAIT_CHECK(errors.size() == known_.begin()->second.size());
    return errors;
  }

  // Of the points that were computed and move no other constants: the one of the least mean error.
  Point best_known(const std::vector<int>& used) const {
    const Point* best = &known_.begin()->first;
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [point, errors] : known_) {
      bool others = false;
      for (std::size_t c = 0; c < point.size(); ++c)
        others |= point[c] != 0 && std::ranges::find(used, static_cast<int>(c)) == used.end();
      const double error = mean_size(errors, Fold{}, false);
      if (others || error >= least) continue;
      least = error;
      best = &point;
    }
    return *best;
  }

 private:
  const ErrorsAt& errors_at_;
  const std::function<bool()>& stop_;
  std::map<Point, std::vector<double>> known_;
};

// The least mean error of the runs that are not left out, by moves of one constant at a time whose
// size is halved where none helps.
Point best_point(Landscape& landscape, std::size_t constants, const std::vector<int>& used,
                 const Fold& fold) {
  Point point(constants, 0);
  double least = mean_size(landscape.at(point), fold, false);
  for (int size = 8; size >= 1;) {
    bool moved = false;
    for (const int constant : used)
      for (const int move : {-size, size}) {
        Point next = point;
        next[constant] = std::clamp(next[constant] + move, -kMostSteps, kMostSteps);
        const double error = mean_size(landscape.at(next), fold, false);
        if (error >= least) continue;
        least = error;
        point = std::move(next);
        moved = true;
      }
    if (!moved) size /= 2;
  }
  return point;
}

double left_out_error(Landscape& landscape, std::size_t constants, const std::vector<int>& used,
                      std::size_t runs) {
  const std::size_t parts = runs <= 2 * kParts ? runs : kParts;
  double sum = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    const Fold fold{part, parts};
    const Point point = best_point(landscape, constants, used, fold);
    const std::vector<double>& errors = landscape.at(point);
    for (std::size_t i = part; i < runs; i += parts) sum += std::abs(errors[i]);
  }
  return sum / static_cast<double>(runs);
}

void scale_efficiency(ConstantKind kind, double factor, Efficiency& e) {
  const auto times = [&](double& share) { share = std::min(1.0, share * factor); };
  if (kind == ConstantKind::compute)
    for (double* share : {&e.matmul, &e.attention, &e.batched}) times(*share);
  if (kind == ConstantKind::memory) times(e.memory);
  if (kind == ConstantKind::intra) times(e.intra);
  if (kind == ConstantKind::inter) times(e.inter);
}

void scale_host(double factor, FrameworkTraits& t) {
  for (Seconds* time :
       {&t.host_block, &t.host_split, &t.host_separate_softmax, &t.host_checkpoint, &t.host_kernel,
        &t.host_experts, &t.host_head, &t.host_embedding, &t.host_gather, &t.host_update})
    *time = factor * *time;
}

void add_once(std::vector<OwnConstant>& list, ConstantKind kind, const std::string& owner) {
  const OwnConstant constant{kind, owner};
  if (std::ranges::find(list, constant) == list.end()) list.push_back(constant);
}

}  // namespace

std::string in_words(const OwnConstant& constant) {
  switch (constant.kind) {
    case ConstantKind::compute:
      return constant.owner + ": share of peak in products and attention";
    case ConstantKind::memory:
      return constant.owner + ": share of memory bandwidth";
    case ConstantKind::intra:
      return constant.owner + ": share of the links in a node";
    case ConstantKind::inter:
      return constant.owner + ": share of the network";
    case ConstantKind::host:
      return constant.owner + ": times of launching";
  }
  return constant.owner;
}

std::vector<OwnConstant> own_constants(const std::vector<MeasuredRun>& runs) {
  std::vector<OwnConstant> out;
  for (const MeasuredRun& run : runs) {
    if (!run.problem || !run.step) continue;
    const Cluster& cluster = run.problem->cluster;
    const bool several_nodes = cluster.nodes.size() > 1;
    for (const DeviceType& type : cluster.device_types) {
      add_once(out, ConstantKind::compute, type.name);
      add_once(out, ConstantKind::memory, type.name);
      if (cluster.device_count() > static_cast<int>(cluster.nodes.size()))
        add_once(out, ConstantKind::intra, type.name);
      if (several_nodes) add_once(out, ConstantKind::inter, type.name);
    }
    add_once(out, ConstantKind::host, run.problem->job.framework.name);
  }
  return out;
}

void scale(const OwnConstant& constant, double factor, Catalogue& catalogue) {
  if (constant.kind == ConstantKind::host) {
    for (FrameworkEntry& entry : catalogue.frameworks)
      if (entry.framework.name == constant.owner) scale_host(factor, entry.framework.traits);
    return;
  }
  for (DeviceEntry& entry : catalogue.devices) {
    if (entry.type.name != constant.owner) continue;
    scale_efficiency(constant.kind, factor, entry.type.efficiency);
    if (entry.in_clusters) scale_efficiency(constant.kind, factor, *entry.in_clusters);
  }
}

bool Calibration::changed() const {
  return std::ranges::any_of(factors, [](double factor) { return factor != 1; });
}

namespace {

// One more constant: the one that lowers the left-out error most. False where none does, and when
// it was stopped: then with what the trials that were finished say.
bool add_constant(Landscape& landscape, std::size_t runs, std::vector<int>& used, Point& point,
                  Calibration& out) {
  const auto unless_stopped = [&](const std::function<void()>& work) {
    try {
      if (!out.cut_short) work();
    } catch (const Stopped&) {
      out.cut_short = true;
    }
  };
  int best = -1;
  double least = (1 - kLeastGain) * out.left_out;
  std::vector<int> with = used;
  with.push_back(-1);
  unless_stopped([&] {
    for (int c = 0; c < static_cast<int>(point.size()); ++c) {
      if (std::ranges::find(used, c) != used.end()) continue;
      with.back() = c;
      const double error = left_out_error(landscape, point.size(), with, runs);
      out.trials.push_back({.constant = c, .left_out = error, .kept = false});
      if (error >= least) continue;
      least = error;
      best = c;
    }
  });
  if (best < 0) return false;
  with.back() = best;
  unless_stopped([&] { point = best_point(landscape, point.size(), with, Fold{}); });
  if (out.cut_short) point = landscape.best_known(with);
  for (ConstantTrial& trial : out.trials)
    if (trial.constant == best && trial.left_out == least) trial.kept = true;
  used = with;
  out.left_out = least;
  return !out.cut_short;
}

}  // namespace

Calibration calibrate(int constants, const ErrorsAt& errors_at, const std::function<bool()>& stop) {
  Landscape landscape(errors_at, stop);
  const Fold none;
  Point point(static_cast<std::size_t>(constants), 0);
  const std::size_t runs = landscape.at(point).size();
  PLAIT_CHECK(runs > 1);
  Calibration out;
  out.before = mean_size(landscape.at(point), none, false);
  out.left_out = out.before;
  std::vector<int> used;
  while (used.size() < point.size() && add_constant(landscape, runs, used, point, out)) continue;
  for (const int steps : point) out.factors.push_back(steps == 0 ? 1 : factor_of(steps));
  out.in_sample = mean_size(landscape.at(point), none, false);
  return out;
}

}  // namespace plait
