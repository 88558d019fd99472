#include "runtime/torch/comm/communicator.h"

#include <ATen/ATen.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <set>
#include <system_error>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#if defined(USE_C10D_NCCL)
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include "base/error.h"
#include "runtime/launch/cores.h"
#include "runtime/meet/meeting_server.h"
#include "runtime/torch/comm/meeting_store.h"

namespace plait::runtime {

// What is there of the run besides its groups. The server goes after the store that asks it.
class Meeting {
 public:
  std::unique_ptr<MeetingServer> server;  // of rank 0
  c10::intrusive_ptr<c10d::Store> store;
  std::string address = "127.0.0.1";  // that Gloo listens on, unless there is an
  std::string interface;              // interface
};

namespace {

#if TORCH_VERSION_MAJOR >= 2
using Backend = c10d::Backend;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;
#else
using Backend = c10d::ProcessGroup;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;
#endif
using BackendPointer = c10::intrusive_ptr<Backend>;

constexpr auto kTimeout = std::chrono::minutes(30);
constexpr auto kMeetingTimeout = std::chrono::minutes(5);

std::string key_of(const std::vector<int>& ranks) {
  std::string key;
  for (const int rank : ranks) key += std::to_string(rank) + ",";
  return key;
}

// Gloo listens on one interface too: the one that is named, else the one that leads to rank 0.
c10::intrusive_ptr<c10d::ProcessGroupGloo::Options> gloo_options(const Meeting& meeting) {
  const RoamingThreads receiving;
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices.push_back(
      meeting.interface.empty()
          ? c10d::ProcessGroupGloo::createDeviceForHostname(meeting.address)
          : c10d::ProcessGroupGloo::createDeviceForInterface(meeting.interface));
  options->threads = 1;
  options->timeout = kTimeout;
  return options;
}

// Runs one operation of c10d; its errors are a peer's.
template <typename Operation>
auto guarded(Heartbeat* heart, const Operation& operation) {
  std::unique_ptr<Heartbeat::Wait> wait;
  if (heart != nullptr) wait = std::make_unique<Heartbeat::Wait>(*heart);
  try {
    return operation();
  } catch (const std::system_error&) {
    throw;  // what this machine refuses, such as one thread more
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw PeerLost("lost another rank: " + text.substr(0, text.find('\n')));
  }
}

}  // namespace

std::shared_ptr<Meeting> meet_at(const MeetingPlace& place, int rank, const Tell& tell) {
  try {
    auto meeting = std::make_shared<Meeting>();
    if (rank == 0) meeting->server = std::make_unique<MeetingServer>(place, tell);
    if (rank == 0 && place.network && tell)
      tell("ranks meet at " + meeting->server->where() + ", and must show the secret of the run");
    auto client = std::make_unique<MeetingClient>(place, rank, kMeetingTimeout);
    meeting->address = client->address();
    meeting->interface = place.interface;
    meeting->store = c10::make_intrusive<MeetingStore>(place, rank, std::move(client));
    return meeting;
  } catch (const MeetingFault& fault) {
    throw PeerLost(std::string("cannot meet the other ranks: ") + fault.what());
  }
}

std::shared_ptr<Meeting> meet_in_process() {
  auto meeting = std::make_shared<Meeting>();
  meeting->store = c10::make_intrusive<c10d::HashStore>();
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface != nullptr) meeting->interface = interface;
  return meeting;
}

namespace {

class Sum : public PendingSum {
 public:
  Sum(WorkPointer work, at::Tensor tensor, Heartbeat* heart)
      : work_(std::move(work)), tensor_(std::move(tensor)), heart_(heart) {}
  void wait() override {
    guarded(heart_, [&] { work_->wait(); });
  }

 private:
  WorkPointer work_;
  at::Tensor tensor_;
  Heartbeat* heart_;
};

}  // namespace

// A group as this rank sees it.
class Communicator::Member : public TensorGroup {
 public:
  Member(BackendPointer backend, int size, int rank, bool gloo, Heartbeat* heart)
      : backend_(std::move(backend)), size_(size), rank_(rank), gloo_(gloo), heart_(heart) {}

  int size() const override { return size_; }
  int rank() const override { return rank_; }

  void all_reduce(at::Tensor& tensor, Reduction reduction) override {
    const bool wide = gloo_ && tensor.scalar_type() == at::kBFloat16;
    const bool direct = !wide && tensor.is_contiguous();
    const at::Tensor buffer =
        direct ? tensor : (wide ? tensor.to(at::kFloat) : tensor).contiguous();
    std::vector<at::Tensor> tensors{buffer};
    c10d::AllreduceOptions options;
    options.reduceOp = reduction == Reduction::sum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
    guarded(heart_, [&] { backend_->allreduce(tensors, options)->wait(); });
    if (!direct) tensor.copy_(buffer);
  }

  std::unique_ptr<PendingSum> begin_sum(const at::Tensor& tensor) override {
    PLAIT_CHECK(tensor.is_contiguous() && !(gloo_ && tensor.scalar_type() == at::kBFloat16));
    std::vector<at::Tensor> tensors{tensor};
    return std::make_unique<Sum>(
        guarded(heart_, [&] { return backend_->allreduce(tensors, c10d::AllreduceOptions()); }),
        tensor, heart_);
  }

  at::Tensor all_gather(const at::Tensor& part, int dim) override {
    // Gloo knows no bf16; as fp16 its bits are copied all the same.
    const bool renamed = gloo_ && part.scalar_type() == at::kBFloat16;
    const at::Tensor mine = renamed ? part.contiguous().view(at::kHalf) : part.contiguous();
    std::vector<std::vector<at::Tensor>> outputs(1);
    for (int i = 0; i < size_; ++i) outputs[0].push_back(at::empty_like(mine));
    std::vector<at::Tensor> inputs{mine};
    guarded(heart_, [&] { backend_->allgather(outputs, inputs)->wait(); });
    const at::Tensor all = at::cat(outputs[0], dim);
    return renamed ? all.view(at::kBFloat16) : all;
  }

  at::Tensor reduce_scatter(const at::Tensor& whole, int dim) override {
    const std::int64_t each = whole.size(dim) / size_;
    if (gloo_) {
      at::Tensor sum = whole.clone(at::MemoryFormat::Contiguous);
      all_reduce(sum, Reduction::sum);
      return sum.narrow(dim, rank_ * each, each).contiguous();
    }
    std::vector<std::vector<at::Tensor>> inputs(1);
    for (int i = 0; i < size_; ++i)
      inputs[0].push_back(whole.narrow(dim, i * each, each).contiguous());
    std::vector<at::Tensor> outputs{at::empty_like(inputs[0][rank_])};
    guarded(heart_, [&] { backend_->reduce_scatter(outputs, inputs)->wait(); });
    return outputs[0];
  }

 private:
  BackendPointer backend_;
  int size_;
  int rank_;
  bool gloo_;
  Heartbeat* heart_;
};

struct Communicator::Groups {
  Made made;
  Made background;
  // Between any two ranks: one for Gloo; for NCCL, whose messages wait for each other in a group,
  // one for each channel and direction.
  std::vector<BackendPointer> messages;
  struct Sent {
    WorkPointer work;
    at::Tensor tensor;
  };
  std::deque<Sent> sent;
};

Communicator::Communicator(std::shared_ptr<Meeting> meeting, int rank, int world, at::Device device,
                           Heartbeat* heart)
    : rank_(rank),
      world_(world),
      device_(device),
      meeting_(std::move(meeting)),
      heart_(heart),
      groups_(std::make_unique<Groups>()) {}

Communicator::~Communicator() = default;

namespace {

// libtorch 2 keeps a record of all collectives of a process, and enters new groups into it before
// it takes its lock: threads with groups of their own crash. The record is not needed. Said before
// main: setenv moves what getenv of another thread reads.
[[maybe_unused]] const int kNoRecord = setenv("TORCH_FR_BUFFER_SIZE", "0", 0);

BackendPointer make_backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                            bool cuda, const Meeting& meeting) {
  if (!cuda)
    return c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, gloo_options(meeting));
#if defined(USE_C10D_NCCL)
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size);
#else
  throw PeerLost("this libtorch has no NCCL: several GPUs cannot be used");
#endif
}

}  // namespace

void Communicator::make_group(const std::vector<int>& ranks, const std::string& name, Made& made) {
  const auto me = std::find(ranks.begin(), ranks.end(), rank_);
  if (me == ranks.end() || made.contains(ranks)) return;
  const int size = static_cast<int>(ranks.size());
  if (size == 1) {
    made[ranks] = std::make_unique<AbsentGroup>();
    return;
  }
  const bool cuda = device_.is_cuda();
  const int place = static_cast<int>(me - ranks.begin());
  const auto store =
      c10::make_intrusive<c10d::PrefixStore>(name + " " + key_of(ranks), meeting_->store);
  BackendPointer backend =
      guarded(heart_, [&] { return make_backend(store, place, size, cuda, *meeting_); });
  auto member = std::make_unique<Member>(std::move(backend), size, place, !cuda, heart_);
  // NCCL meets at its first collective, which must not be one that only some ranks have reached.
  if (cuda) {
    at::Tensor first = at::zeros({1}, device_);
    member->all_reduce(first, Reduction::sum);
  }
  made[ranks] = std::move(member);
}

void Communicator::make_groups(std::vector<std::vector<int>> groups,
                               const std::vector<std::vector<int>>& background) {
  std::vector<int> all(world_);
  for (int r = 0; r < world_; ++r) all[r] = r;
  groups.push_back(all);
  const std::set<std::vector<int>> distinct(groups.begin(), groups.end());
  const bool cuda = device_.is_cuda();
  for (const std::vector<int>& ranks : distinct) make_group(ranks, "group", groups_->made);
  for (const std::vector<int>& ranks :
       std::set<std::vector<int>>(background.begin(), background.end()))
    make_group(ranks, "background", groups_->background);
  if (world_ == 1) return;
  for (int i = 0; i < (cuda ? 2 * kChannels : 1); ++i) {
    const auto store =
        c10::make_intrusive<c10d::PrefixStore>("messages " + std::to_string(i), meeting_->store);
    groups_->messages.push_back(
        guarded(heart_, [&] { return make_backend(store, rank_, world_, cuda, *meeting_); }));
  }
}

TensorGroup& Communicator::group(const std::vector<int>& ranks) {
  const auto found = groups_->made.find(ranks);
  PLAIT_CHECK(found != groups_->made.end());
  return *found->second;
}

TensorGroup& Communicator::background_group(const std::vector<int>& ranks) {
  const auto found = groups_->background.find(ranks);
  PLAIT_CHECK(found != groups_->background.end());
  return *found->second;
}

TensorGroup& Communicator::everyone() {
  std::vector<int> all(world_);
  for (int r = 0; r < world_; ++r) all[r] = r;
  return group(all);
}

void Communicator::send(const at::Tensor& tensor, int to, int channel, int tag) {
  const std::size_t group = device_.is_cuda() ? 2 * channel + (to > rank_ ? 1 : 0) : 0;
  std::vector<at::Tensor> tensors{tensor.contiguous()};
  WorkPointer work =
      guarded(heart_, [&] { return groups_->messages[group]->send(tensors, to, tag); });
  groups_->sent.push_back({std::move(work), tensors[0]});
}

void Communicator::receive(at::Tensor tensor, int from, int channel, int tag) {
  PLAIT_CHECK(tensor.is_contiguous());
  const std::size_t group = device_.is_cuda() ? 2 * channel + (rank_ > from ? 1 : 0) : 0;
  std::vector<at::Tensor> tensors{tensor};
  const auto begin = std::chrono::steady_clock::now();
  guarded(heart_, [&] { groups_->messages[group]->recv(tensors, from, tag)->wait(); });
  waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Communicator::finish_sends() {
  while (!groups_->sent.empty()) {
    guarded(heart_, [&] { groups_->sent.front().work->wait(); });
    groups_->sent.pop_front();
  }
}

void Communicator::put(const std::string& key, const std::string& text) {
  guarded(heart_,
          [&] { meeting_->store->set(key, std::vector<std::uint8_t>(text.begin(), text.end())); });
}

std::string Communicator::get(const std::string& key) {
  return guarded(heart_, [&] {
    const std::vector<std::uint8_t> bytes = meeting_->store->get(key);
    return std::string(bytes.begin(), bytes.end());
  });
}

}  // namespace plait::runtime
