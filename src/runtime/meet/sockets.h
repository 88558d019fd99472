#pragma once

#include <sys/socket.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/meet/meeting_place.h"

namespace plait::runtime {

// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

struct Listening {
  Descriptor socket;
  std::string where;  // "10.0.0.1:29500 on eth0", for people
};

// Listens at the place, on one interface: the one that the place names, else the one that has the
// address of its host, else (a machine that knows its own name as 127.0.1.1) the one of the default
// route. MeetingFault when it cannot; the socket does not block.
Listening listen_at(const MeetingPlace& place);

// Connects once. Gives no descriptor when nobody listens there yet; MeetingFault when the name
// means nothing, or when a process of another user listens. `errno_text` says why there is none.
Descriptor connect_to(const MeetingPlace& place, std::string& errno_text);

// Whether the other end of a Unix socket is a process of this user, or of root; true for TCP.
bool is_own_user(int socket);

// The address of this end of a TCP connection, which other machines reach; "127.0.0.1" for others.
std::string own_address(int socket);
// "10.0.0.1:4711", or "a process of this machine"
std::string peer_in_words(int socket);

// Both wait at most until `deadline`; false when it passes or the connection ends.
bool send_all(int socket, std::string_view bytes, std::chrono::steady_clock::time_point deadline);
bool receive_all(int socket, std::size_t size, std::string& into,
                 std::chrono::steady_clock::time_point deadline);

}  // namespace plait::runtime
