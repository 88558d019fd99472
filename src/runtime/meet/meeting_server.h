#pragma once

#include <memory>
#include <string>
#include <thread>

#include "runtime/meet/meeting_place.h"
#include "runtime/meet/sockets.h"

namespace plait::runtime {

// Serves keys and values to the ranks of a run, from a thread of its own; rank 0 has it. A
// connection is believed nothing before it has shown the secret (wire.h). Whoever says nothing,
// something else or has another secret is cut off after at most kGreetingLimit and told of; no
// number of them keeps ranks out or takes memory.
class MeetingServer {
 public:
  // MeetingFault when it cannot listen. `tell` is called from the server's thread.
  MeetingServer(const MeetingPlace& place, Tell tell);
  ~MeetingServer();
  MeetingServer(const MeetingServer&) = delete;
  MeetingServer& operator=(const MeetingServer&) = delete;

  const std::string& where() const { return where_; }  // "10.0.0.1:29500 on eth0"

 private:
  class Loop;
  std::string where_;
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace plait::runtime
