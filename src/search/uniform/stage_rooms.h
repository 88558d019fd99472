#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "search/uniform/placed_stages.h"

namespace plait {

// How many layers a stage has room for in a step, by what the stages before and after it take and
// by its memory, or less than none. With n layers its passes take n x + ends = X,
// and m micro-batches, of which k are in flight there,
//   before + m X + finish of the first stage
//   forward part of before + m X + finish
// and under 1F1B, with c = m - k, the first micro-batch's round trip and the finish of the first
// stage besides
//   c X + (k - 1) max(f, b)
//   c X + after, if c > 0.
// There a micro-batch also waits for the one k before it, and with m = (q - 1) k + 1 + r,
//   before + (c + 1) X + after + (k - 1) max(f, b) + finish of the first stage
//   before + q (X + after) + r max(f, b) + finish of the first stage
// and the same with the forward part of before and the own finish. In v chunks, k of which are in
// flight, the first backward pass follows the first micro-batch's forward pass through all chunks
// and the backward pass through the last chunks of later stages; with d layers that a chunk may
// lack,
//   forward trip + backward after + m b + (m v - k) (f / v - d) + backward before + finish of the
//   first stage, or the own instead of both.
class StageRooms {
 public:
  using StageAt = PlacedStages::StageAt;
  StageRooms(const UniformLayout& layout, PlacedStages& placed);

  // What other stages take at least, in seconds.
  struct Around {
    double forward_before = 0;
    double backward_before = 0;
    double before = 0;  // forward and backward
    double after = 0;
    double backward_after = 0;
  };
  // Of a step that is asked for.
  struct Limits {
    double step = 0;
    double trip = 0;     // the round trip of a micro-batch, at least
    double forward = 0;  // the forward part of it, at least
    double finish = 0;   // of the first stage, at least
  };
  // Seconds that all layers of a stage may take, what one of them takes of these, and what of the
  // stages before is counted besides.
  enum class Before : std::uint8_t { none, passes, forward, backward };
  struct Rooms {
    struct Room {
      double seconds;
      double of_layer;
      Before before;
    };
    std::array<Room, 9> all{};
    int count = 0;
    void add(double seconds, double of_layer, Before before) {
      all[count++] = {seconds, of_layer, before};
    }
  };
  Rooms of(const OrderGraph::Place& place, const StageAt& at, const Limits& limits,
           const Around& around) const;
  double most_within(const Rooms& rooms, const Around& around) const;
  double most_layers(const OrderGraph::Place& place, const StageAt& at, const Limits& limits,
                     const Around& around);
  int fewer_for_recompute(int most, const OrderGraph::Place& place, const StageAt& at,
                          const Limits& limits, const Around& around);
  // By so many layers in all, each chunk times the number of chunks may be less than stages have.
  double missing_layers(int stages) const;
  // Whether some stage could have more layers, or some at all, if it had more memory.
  bool lack_memory() const { return lack_memory_; }

 private:
  const UniformLayout& layout_;
  PlacedStages& placed_;
  const std::optional<LayersByKind>& layers_;
  double micro_batches_;
  bool lack_memory_ = false;
};

}  // namespace plait
