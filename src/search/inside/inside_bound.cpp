#include "search/inside/inside_bound.h"

#include <algorithm>
#include <cmath>

#include "cost/pipeline/schedule.h"
#include "search/space/space.h"

namespace plait {
namespace {

constexpr int kMostDevicesBounded = 8;
constexpr int kMostUnitsBounded = 1'500;
constexpr int kPricesOfBytes = 24;  // that are tried for each setting, once they are bracketed
constexpr int kMostDoublings = 40;  // of the first price; the bound of what never fits has no top
constexpr double kGolden = 0.6180339887498949;
constexpr double kRoundingOfInsides = 1e-9;

// Of the header, from the top.
enum class WeightedPath { waits, works, travels };

// Pipelines that are bounded together.
struct PipelineGroup {
  int devices = 1;  // in use
  int fewest_stages = 1;
  int most_stages = 1;
  WeightedPath path = WeightedPath::works;
};

// Those of one setting.
class SettingBound {
 public:
  SettingBound(StageInsides& insides, const Space& space, const PipelineGroup& group);

  // The highest bound of all prices; those above `enough` are not told apart.
  double best(double enough);

 private:
  // Stages of so many devices.
  struct Size {
    int devices = 1;
    const std::vector<std::vector<StageInsides::UnitWay>>* ways = nullptr;  // by distinct unit
    double room = 0;
  };
  double at(double price);
  void price_units(double price);
  // How often the time of such a stage counts, with so many devices and stages after it.
  double weight(int devices, int used, int stages) const;
  int slot(int used, int stages) const { return used * group_.most_stages + stages; }
  double& cost(int size, int slot, int distinct) {
    return costs_[(size * slots_ + slot) * insides_.distinct_count() + distinct];
  }

  StageInsides& insides_;
  const Space& space_;
  PipelineGroup group_;
  int slots_;
  double rounds_;
  std::vector<Size> sizes_;
  std::vector<double> costs_;
};

SettingBound::SettingBound(StageInsides& insides, const Space& space, const PipelineGroup& group)
    : insides_(insides),
      space_(space),
      group_(group),
      slots_(group.devices * group.most_stages),
      rounds_(insides.settings().micro_batches) {
  for (int devices = 1; devices <= group.devices; ++devices) {
    const StageInsides::Place place{0, 0, devices};
    const auto& ways = insides.ways(place);
    if (!ways.empty()) sizes_.push_back({devices, &ways, insides.room(place).value});
  }
  costs_.resize(sizes_.size() * slots_ * insides.distinct_count());
}

double SettingBound::weight(int devices, int used, int stages) const {
  if (group_.path == WeightedPath::works) return rounds_ * devices + used;
  if (group_.path == WeightedPath::travels) return group_.devices + (rounds_ - 1) / 2 * devices;
  const int before = group_.devices - used - devices;
  return (rounds_ - stages) * devices + used + 2.0 * before;
}

void SettingBound::price_units(double price) {
  for (std::size_t i = 0; i < sizes_.size(); ++i)
    for (int used = 0; used + sizes_[i].devices <= group_.devices; ++used)
      for (int stages = 0; stages < std::min(used + 1, group_.most_stages); ++stages) {
        const int devices = sizes_[i].devices;
        const double often = weight(devices, used, stages);
        const double once = devices == group_.devices ? devices : 0;  // the only stage
        const double live = chunks_in_flight(Schedule::one_f_one_b, stages + 1, 0,
                                             insides_.settings().micro_batches, 1);
        for (int d = 0; d < insides_.distinct_count(); ++d) {
          double least = HUGE_VAL;
          for (const StageInsides::UnitWay& way : (*sizes_[i].ways)[d])
            least = std::min(least, often * way.time + once * way.optimizer +
                                        price * devices * (way.held + live * way.saved));
          cost(static_cast<int>(i), slot(used, stages), d) = least;
        }
      }
}

double SettingBound::at(double price) {
  price_units(price);
  const int sizes = static_cast<int>(sizes_.size());
  // Of the units from one on: with a stage that begins there, and with one that has begun before.
  std::vector<double> cut((group_.devices + 1) * (group_.most_stages + 1), HUGE_VAL);
  std::vector<double> next = cut;
  std::vector<double> inside(slots_ * sizes, HUGE_VAL);
  const auto state = [&](int used, int stages) { return used * (group_.most_stages + 1) + stages; };
  cut[state(0, 0)] = 0;
  for (int u = space_.problem().model.unit_count(); u-- > 0;) {
    const int distinct = insides_.distinct_of(u);
    std::ranges::fill(next, HUGE_VAL);
    for (int used = 0; used < group_.devices; ++used)
      for (int stages = 0; stages < std::min(used + 1, group_.most_stages); ++stages)
        for (int i = 0; i < sizes && used + sizes_[i].devices <= group_.devices; ++i) {
          const Size& size = sizes_[i];
          double& here = inside[slot(used, stages) * sizes + i];
          const double ends = cut[state(used, stages)] - price * size.devices * size.room;
          here = std::min(here, ends) + cost(i, slot(used, stages), distinct);
          double& begins = next[state(used + size.devices, stages + 1)];
          begins = std::min(begins, here);
        }
    cut.swap(next);
  }
  double least = HUGE_VAL;
  for (int stages = group_.fewest_stages; stages <= group_.most_stages; ++stages)
    least = std::min(least, cut[state(group_.devices, stages)]);
  return least / group_.devices;
}

double SettingBound::best(double enough) {
  if (sizes_.empty()) return HUGE_VAL;
  double best = at(0);
  if (best >= enough || !(sizes_.back().room > 0)) return best;
  const auto look = [&](double price) {
    const double bound = at(price);
    best = std::max(best, bound);
    return bound;
  };
  // What all bytes of all devices cost is near a step's time.
  double high = best / sizes_.back().room;
  double bound = look(high);
  for (int i = 0; i < kMostDoublings && best < enough; ++i) {
    high *= 2;
    const double higher = look(high);
    if (higher < bound) break;
    bound = higher;
  }
  double low = 0;
  double left = high - kGolden * (high - low);
  double right = low + kGolden * (high - low);
  double of_left = look(left);
  double of_right = look(right);
  for (int i = 0; i < kPricesOfBytes && best < enough; ++i) {
    if (of_left < of_right) {
      low = left;
      left = right;
      of_left = of_right;
      right = low + kGolden * (high - low);
      of_right = look(right);
    } else {
      high = right;
      right = left;
      of_right = of_left;
      left = high - kGolden * (high - low);
      of_left = look(left);
    }
  }
  return best;
}

// Devices that are left over are whole nodes.
std::vector<PipelineGroup> groups_to_bound(const Space& space, const PlanSettings& settings) {
  const Pool& pool = space.pools().front();
  std::vector<PipelineGroup> out;
  for (int devices = 1; devices <= pool.size(); ++devices) {
    const bool whole = devices == pool.size() || devices % pool.per_node == 0;
    if (!whole && !space.target().idle_in_node) continue;
    const int fewest = space.min_stages();
    const int most = std::min(space.max_stages(settings), devices);
    const int waiting = std::min(most, settings.micro_batches - 1);
    if (fewest <= waiting) out.push_back({devices, fewest, waiting, WeightedPath::waits});
    if (most > waiting) out.push_back({devices, std::max(fewest, waiting + 1), most});
  }
  return out;
}

}  // namespace

bool may_bound_insides(const SearchContext& context) {
  const Space& space = *context.space;
  const Target& target = space.target();
  const bool keeps_all = std::ranges::all_of(space.settings(), [](const PlanSettings& settings) {
    return settings.zero == ZeroStage::off && settings.context == 1 && settings.expert == 1 &&
           settings.offload <= 0;
  });
  const bool one_schedule =
      target.schedules.size() == 1 && target.schedules.front() == Schedule::one_f_one_b;
  return space.pools().size() == 1 && space.pools().front().size() <= kMostDevicesBounded &&
         keeps_all && one_schedule && !target.unequal_shares &&
         context.problem.model.unit_count() <= kMostUnitsBounded;
}

Seconds least_step_inside(const SearchContext& context, Seconds enough) {
  const Space& space = *context.space;
  double least = enough.value;
  for (const PlanSettings& settings : space.settings()) {
    if (context.should_stop()) return {};
    StageInsides insides(space, *context.engine, settings);
    for (PipelineGroup group : groups_to_bound(space, settings)) {
      double bound = SettingBound(insides, space, group).best(least);
      if (group.path == WeightedPath::works) {
        group.path = WeightedPath::travels;
        bound = std::max(bound, SettingBound(insides, space, group).best(least));
      }
      least = std::min(least, bound);
    }
  }
  return Seconds((1 - kRoundingOfInsides) * least);
}

}  // namespace plait
