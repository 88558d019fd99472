#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/launch/heartbeat.h"
#include "runtime/meet/meeting_place.h"
#include "runtime/torch/comm/tensor_group.h"

namespace plait::runtime {

// Another rank is gone or its link is cut.
class PeerLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Keys and values that all ranks see, as c10d wants them, behind a header without it.
class Meeting;
// Rank 0 serves them (runtime/meet/meeting_server.h) and tells where.
std::shared_ptr<Meeting> meet_at(const MeetingPlace& place, int rank, const Tell& tell);
std::shared_ptr<Meeting> meet_in_process();  // for ranks that are threads

// All ranks of a run: Gloo on CPUs, NCCL on GPUs. Every operation throws PeerLost when it fails.
class Communicator {
 public:
  Communicator(std::shared_ptr<Meeting> meeting, int rank, int world, at::Device device,
               Heartbeat* heart);
  ~Communicator();

  int rank() const { return rank_; }
  int world() const { return world_; }
  at::Device device() const { return device_; }

  // Makes groups of ranks. All ranks call it once, with the same lists; those of one rank cost
  // nothing. `background` are groups of their own, though they may have the ranks of others: what
  // is begun there does not get in the way of the others' collectives.
  void make_groups(std::vector<std::vector<int>> groups,
                   const std::vector<std::vector<int>>& background = {});
  TensorGroup& group(const std::vector<int>& ranks);
  TensorGroup& background_group(const std::vector<int>& ranks);
  TensorGroup& everyone();

  // Messages between two ranks on one channel arrive in the order in which they are sent. A send
  // does not wait for its receiver.
  static constexpr int kChannels = 2;  // forward, backward
  void send(const at::Tensor& tensor, int to, int channel, int tag);
  void receive(at::Tensor tensor, int from, int channel, int tag);
  void finish_sends();

  // Seconds of waiting in receive() so far.
  double waited() const { return waited_; }

  void put(const std::string& key, const std::string& text);
  std::string get(const std::string& key);  // waits for it

 private:
  struct Groups;
  class Member;
  using Made = std::map<std::vector<int>, std::unique_ptr<TensorGroup>>;
  void make_group(const std::vector<int>& ranks, const std::string& name, Made& made);
  int rank_;
  int world_;
  at::Device device_;
  std::shared_ptr<Meeting> meeting_;
  Heartbeat* heart_;
  std::unique_ptr<Groups> groups_;
  double waited_ = 0;
};

}  // namespace plait::runtime
