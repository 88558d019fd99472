#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/error.h"
#include "runtime/profiler/profile_links.h"
#include "runtime/torch/comm/communicator.h"
#include "runtime/torch/comm/device_state.h"
#include "runtime/torch/measure/measure_clock.h"
#include "runtime/torch/measure/profile_backend.h"

namespace plait::runtime {
namespace {

constexpr int kRounds = 5;
constexpr int kMostCalls = 50;

using Clock = std::chrono::steady_clock;

// Measures one group as one of its ranks; all of them make the same calls.
class GroupMeter {
 public:
  GroupMeter(Communicator& all, const LinkShape& shape, const LinkRequest& request)
      : all_(all), shape_(shape), request_(request), group_(all.group(shape.ranks)) {}

  // Seconds of each round, on every rank.
  Seconds collective(const std::string& name, std::int64_t bytes) {
    const std::int64_t members = static_cast<std::int64_t>(shape_.ranks.size());
    const std::int64_t part = std::max<std::int64_t>(1, bytes / 4 / members);
    const at::TensorOptions options = at::TensorOptions().dtype(at::kFloat).device(all_.device());
    at::Tensor whole = at::ones({part * members}, options);
    const at::Tensor piece = at::ones({part}, options);
    if (name == "all_reduce") return timed([&] { group_.all_reduce(whole, Reduction::sum); });
    if (name == "all_gather") return timed([&] { group_.all_gather(piece, 0); });
    if (name == "reduce_scatter") return timed([&] { group_.reduce_scatter(whole, 0); });
    std::vector<at::Tensor> received(shape_.ranks.size(), piece.clone());
    for (at::Tensor& tensor : received) tensor = piece.clone();
    return timed([&] { exchange(piece, received); });
  }

  // From the first rank to the last and back, halved.
  Seconds send(std::int64_t bytes) {
    const at::TensorOptions options = at::TensorOptions().dtype(at::kFloat).device(all_.device());
    at::Tensor tensor = at::ones({std::max<std::int64_t>(1, bytes / 4)}, options);
    const int first = shape_.ranks.front(), last = shape_.ranks.back();
    return timed([&] {
             if (all_.rank() == first) {
               all_.send(tensor, last, 0, 0);
               all_.receive(tensor, last, 1, 0);
             } else if (all_.rank() == last) {
               all_.receive(tensor, first, 0, 0);
               all_.send(tensor, first, 1, 0);
             }
             all_.finish_sends();
           }) /
           2;
  }

 private:
  // Everybody's part to everybody.
  void exchange(const at::Tensor& piece, std::vector<at::Tensor>& received) {
    for (const int rank : shape_.ranks)
      if (rank != all_.rank()) all_.send(piece, rank, 0, 0);
    for (std::size_t i = 0; i < shape_.ranks.size(); ++i)
      if (shape_.ranks[i] != all_.rank()) all_.receive(received[i], shape_.ranks[i], 0, 0);
    all_.finish_sends();
  }

  void barrier() {
    at::Tensor token = at::ones({1}, at::TensorOptions().dtype(at::kFloat).device(all_.device()));
    group_.all_reduce(token, Reduction::maximum);
    synchronise(all_.device());
  }

  double run(int calls, const std::function<void()>& call) {
    barrier();
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    synchronise(all_.device());
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  Seconds timed(const std::function<void()>& call) {
    run(1, call);
    // All ranks must repeat it as often: the slowest decides.
    at::Tensor once = at::full({1}, run(2, call) / 2, at::kFloat).to(all_.device());
    group_.all_reduce(once, Reduction::maximum);
    const double budget = request_.longest.value / kRounds;
    const int calls =
        std::clamp(static_cast<int>(budget / std::max(1e-7, once.item<double>())), 1, kMostCalls);
    std::vector<double> rounds;
    for (int i = 0; i < kRounds; ++i) rounds.push_back(run(calls, call) / calls);
    return timing_of(rounds).median;
  }

  Communicator& all_;
  const LinkShape& shape_;
  const LinkRequest& request_;
  TensorGroup& group_;
};

std::vector<int> usual_sizes() {
  std::vector<int> sizes;
  for (int size = 1 << 10; size <= 1 << 26; size *= 4) sizes.push_back(size);
  return sizes;
}

LinkCurves all_curves(const LinkRequest& request) {
  const RankPlace& place = request.place;
  const at::Device device =
      request.device == "cuda"
          ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(place.local_rank))
          : at::Device(at::kCPU);
  Communicator all(meet_at(meeting_place(place), place.rank, request.tell), place.rank, place.world,
                   device, request.heart);
  const int per_node = place.local_world > 0 ? place.local_world : place.world;
  const std::vector<LinkShape> shapes = link_shapes(place.world, per_node);
  std::vector<std::vector<int>> groups;
  for (const LinkShape& shape : shapes) groups.push_back(shape.ranks);
  all.make_groups(groups);
  const std::vector<int> sizes = request.sizes.empty() ? usual_sizes() : request.sizes;
  LinkCurves curves;
  for (const LinkShape& shape : shapes) {
    at::Tensor token = at::ones({1}, at::TensorOptions().dtype(at::kFloat).device(device));
    all.everyone().all_reduce(token, Reduction::sum);
    if (std::ranges::find(shape.ranks, place.rank) == shape.ranks.end()) continue;
    GroupMeter meter(all, shape, request);
    const auto add = [&](const std::string& name, int nodes, int each, const auto& measure) {
      auto& curve = curves[{name, request.device_type, nodes, each}];
      for (const int size : sizes) curve.push_back({.size = Bytes(size), .time = measure(size)});
    };
    for (const char* name : {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"})
      add(name, shape.nodes, shape.per_node,
          [&](int size) { return meter.collective(name, size); });
    const bool pair = shape.ranks.size() == 2;
    if (pair) add("send", shape.nodes, 1, [&](int size) { return meter.send(size); });
  }
  at::Tensor token = at::ones({1}, at::TensorOptions().dtype(at::kFloat).device(device));
  all.everyone().all_reduce(token, Reduction::sum);
  return place.rank == 0 ? curves : LinkCurves();
}

}  // namespace

LinkCurves measure_links(const LinkRequest& request) {
  if (request.device == "cuda" && request.place.local_rank >= cuda_devices())
    throw InputError("--device", fmt::format("cuda needs a GPU for each rank of a machine: there "
                                             "are {}, this is local rank {}; --device cpu measures "
                                             "Gloo",
                                             cuda_devices(), request.place.local_rank));
  try {
    return all_curves(request);
  } catch (const PeerLost& error) {
    throw InputError("--comm", error.what());
  }
}

}  // namespace plait::runtime
