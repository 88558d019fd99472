#include "search/uniform/stage_rooms.h"

#include <algorithm>
#include <cmath>

#include "cost/pipeline/schedule.h"

namespace plait {
namespace {

constexpr double kRoomRounding = 1e-9;  // relative

// Of m micro-batches, k of which are in flight at a time, so many follow each other, and after them
// come `rest` others: m = (trips - 1) k + 1 + rest.
struct Waits {
  double trips = 1;
  double rest = 0;
};
Waits waits_of(double micro_batches, double in_flight) {
  const double trips = std::floor((micro_batches - 1) / in_flight) + 1;
  return {trips, micro_batches - 1 - (trips - 1) * in_flight};
}

}  // namespace

StageRooms::StageRooms(const UniformLayout& layout, PlacedStages& placed)
    : layout_(layout),
      placed_(placed),
      layers_(placed.layers()),
      micro_batches_(layout.settings.micro_batches) {}

StageRooms::Rooms StageRooms::of(const OrderGraph::Place& place, const StageAt& at,
                                 const Limits& limits, const Around& around) const {
  const InterleavedStage& stage = at.stage;
  const double m = micro_batches_;
  const double step = limits.step - m * stage.ends;
  const double handed = m * layout_.chunks * (at.sent + at.received);
  Rooms rooms;
  rooms.add(step - limits.finish, m * stage.layer, Before::passes);
  rooms.add(step - stage.finish_of_ends, m * stage.layer + stage.finish, Before::forward);
  rooms.add(limits.step + placed_.tied() - stage.wire_of_ends - handed, stage.wire, Before::none);
  const double rest = limits.step - limits.finish - limits.trip;
  if (layout_.schedule == Schedule::one_f_one_b) {
    const double c = m - at.in_flight;
    const double refill = (at.in_flight - 1) * at.on->longer;
    rooms.add(rest - c * stage.ends, c * stage.layer + refill, Before::none);
    if (c > 0) rooms.add(rest - c * stage.ends - around.after, c * stage.layer, Before::none);
    const Waits waits = waits_of(m, at.in_flight);
    const auto follow = [&](double taken, double of_layer) {
      rooms.add(limits.step - limits.finish - taken, of_layer, Before::passes);
      rooms.add(limits.step - stage.finish_of_ends - taken, of_layer + stage.finish,
                Before::forward);
    };
    follow((c + 1) * stage.ends + around.after, (c + 1) * stage.layer + refill);
    follow(waits.trips * (stage.ends + around.after),
           waits.trips * stage.layer + waits.rest * at.on->longer);
  } else if (layout_.schedule == Schedule::interleaved) {
    const double v = layout_.chunks;
    const double later = m * v - chunks_in_flight(layout_.schedule, layout_.stages, place.stage,
                                                  layout_.settings.micro_batches, layout_.chunks);
    const double passes = m * at.on->backward + later / v * at.on->forward;
    const double room = limits.step - limits.forward - around.backward_after +
                        later * missing_layers(2) / v * at.on->forward;
    rooms.add(room - limits.finish, passes, Before::backward);
    rooms.add(room - stage.finish_of_ends, passes + stage.finish, Before::none);
  } else if (layout_.schedule == Schedule::gpipe) {
    rooms.add(rest - (m - 1) * stage.ends, (m - 1) * stage.layer, Before::none);
  }
  return rooms;
}

double StageRooms::most_within(const Rooms& rooms, const Around& around) const {
  double most = layers_->count;
  for (int i = 0; i < rooms.count; ++i) {
    const Rooms::Room& own = rooms.all[i];
    const double room = own.seconds - (own.before == Before::passes     ? around.before
                                       : own.before == Before::forward  ? around.forward_before
                                       : own.before == Before::backward ? around.backward_before
                                                                        : 0);
    if (own.of_layer > 0)
      most = std::min(most, room / own.of_layer);
    else if (room < 0)
      return -1;
  }
  if (most < -kRoomRounding) return -1;
  most = std::max(0.0, most) * (1 + kRoomRounding);
  return layers_->units.size() == 1 ? std::floor(most) : most;
}

double StageRooms::most_layers(const OrderGraph::Place& place, const StageAt& at,
                               const Limits& limits, const Around& around) {
  double most = most_within(of(place, at, limits, around), around);
  if (most <= 0) return most;
  const double fitting = placed_.most_that_fit(place, *at.on) * placed_.most_worth();
  lack_memory_ = lack_memory_ || fitting < most;
  most = std::min(most, fitting);
  if (!layout_.recomputes_some || !layers_->equal || most < 1) return most;
  return fewer_for_recompute(static_cast<int>(most), place, at, limits, around);
}

// What is recomputed in the last micro-batch may hide as much of the finish.
int StageRooms::fewer_for_recompute(int most, const OrderGraph::Place& place, const StageAt& at,
                                    const Limits& limits, const Around& around) {
  const LayerLoad& own = placed_.load(place, *at.on);
  const InterleavedStage& stage = at.stage;
  const double m = micro_batches_;
  const double c = m - at.in_flight;
  const Waits waits = waits_of(micro_batches_, at.in_flight);
  most = std::min(most, own.most_layers());
  const auto is_late = [&](int n) {
    const double more = own.needed[n] * own.recomputed;
    const double busy = n * stage.layer + stage.ends;
    const double finish = n * stage.finish + stage.finish_of_ends;
    const double step = limits.step * (1 + kRoomRounding) - m * busy;
    if (m * more + limits.finish + around.before > step ||
        (m - 1) * more + finish + around.forward_before > step)
      return true;
    if (layout_.schedule != Schedule::one_f_one_b) return false;
    const double refill = (at.in_flight - 1) * n * at.on->longer;
    const double trips = waits.trips * (busy + more + around.after);
    return std::max(c * (busy + more) + refill + limits.trip, trips + around.before) +
               limits.finish >
           limits.step * (1 + kRoomRounding);
  };
  while (most > 0 && is_late(most)) --most;
  return most;
}

double StageRooms::missing_layers(int stages) const {
  return 1.0 * stages * (layout_.chunks - 1) * (1 + placed_.others()) * placed_.most_worth();
}

}  // namespace plait
