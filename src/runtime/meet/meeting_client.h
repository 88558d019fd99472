#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/meet/meeting_place.h"
#include "runtime/meet/sockets.h"
#include "runtime/meet/wire.h"

namespace plait::runtime {

// A rank's connection to the meeting server (meeting_server.h): keys and values that all ranks of a
// run see. Every call throws MeetingFault when the server is gone; calls of several threads wait
// for each other.
class MeetingClient {
 public:
  using Duration = std::chrono::milliseconds;

  // Tries for `patience` while nobody listens: rank 0 may start last. MeetingFault at once, or
  // after kGreetingLimit, when somebody listens who does not know the secret. InputError when the
  // server says that this rank does not.
  MeetingClient(const MeetingPlace& place, int rank, Duration patience);

  void set(const std::string& key, std::string_view value);
  std::optional<std::string> find(const std::string& key);
  bool wait(const std::vector<std::string>& keys, Duration patience);  // false when it has passed
  std::int64_t add(const std::string& key, std::int64_t number);
  // Sets `desired` where the value is `expected`, or where there is none and `expected` is empty;
  // gives the value after that.
  std::string compare_set(const std::string& key, std::string_view expected,
                          std::string_view desired);
  bool remove(const std::string& key);
  std::int64_t count();

  // The server answers within this time, or it counts as gone.
  Duration answer_limit = Duration(30'000);

  // Of this machine, as rank 0 sees it; "127.0.0.1" where all ranks are on one.
  const std::string& address() const { return address_; }

 private:
  void greet();
  MessageReader ask(const MessageWriter& request, Duration wait = Duration(0));

  MeetingPlace place_;
  int rank_;
  Descriptor socket_;
  std::string address_;
  std::mutex mutex_;
  std::string answer_;
};

}  // namespace plait::runtime
