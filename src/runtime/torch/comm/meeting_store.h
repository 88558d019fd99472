#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "runtime/meet/meeting_client.h"

namespace plait::runtime {

// The keys of a meeting as c10d's process groups want them. Includes c10d: for communicator.cpp.
class MeetingStore : public c10d::Store {
 public:
  MeetingStore(MeetingPlace place, int rank, std::unique_ptr<MeetingClient> client);

  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::uint8_t> compareSet(const std::string& key,
                                       const std::vector<std::uint8_t>& expected,
                                       const std::vector<std::uint8_t>& desired) override;
  std::vector<std::uint8_t> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t number) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  std::int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& patience) override;
  // Of libtorch 2.8 and later: a connection of its own. Not marked as override, for 1.13.
  virtual c10::intrusive_ptr<c10d::Store> clone();

 private:
  MeetingPlace place_;
  int rank_;
  std::unique_ptr<MeetingClient> client_;
};

}  // namespace plait::runtime
