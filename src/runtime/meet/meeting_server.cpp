#include "runtime/meet/meeting_server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <list>
#include <vector>

#include "runtime/launch/run_secret.h"
#include "runtime/meet/meeting_keys.h"
#include "runtime/meet/wire.h"

namespace plait::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// Connections that have not shown the secret yet: with more, the one that has waited longest goes.
constexpr std::size_t kMostStrangers = 256;
// Sentences about strangers in one run: a flood of them must not fill a disk.
constexpr int kMostSentences = 20;

struct Connection {
  Descriptor socket;
  std::string peer;
  std::string nonce = random_bytes(kNonceBytes);
  Clock::time_point since = Clock::now();
  bool known = false;  // has shown the secret
  bool over = false;
  std::string in, out;
  // A request that waits for keys; nothing more is read before it is answered.
  std::vector<std::string> wanted;
  Clock::time_point wanted_until{};
};

}  // namespace

class MeetingServer::Loop {
 public:
  Loop(MeetingPlace place, Descriptor listening, Tell tell)
      : place_(std::move(place)),
        listening_(std::move(listening)),
        wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        tell_(std::move(tell)) {}

  void run();
  void end() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
  }

 private:
  void accept_all();
  void read_from(Connection& connection);
  void greet(Connection& connection);
  void take_requests(Connection& connection);
  bool answer(Connection& connection, std::string_view request);
  void answer_waits();
  void write_to(Connection& connection);
  void drop_silent();
  void turn_away(Connection& connection, const std::string& what);
  int milliseconds_to_next() const;

  MeetingPlace place_;
  Descriptor listening_, wake_;
  Tell tell_;
  int told_ = 0;
  std::list<Connection> connections_;
  MeetingKeys keys_;
  bool changed_ = false;  // keys, since waits were looked at
};

void MeetingServer::Loop::run() {
  for (;;) {
    std::vector<pollfd> waits{{wake_.get(), POLLIN, 0}, {listening_.get(), POLLIN, 0}};
    for (const Connection& connection : connections_) {
      const bool reads = connection.wanted.empty();
      const int events = (reads ? POLLIN : 0) | (connection.out.empty() ? 0 : POLLOUT);
      waits.push_back({connection.socket.get(), static_cast<short>(events), 0});
    }
    const std::size_t before = connections_.size();
    poll(waits.data(), waits.size(), milliseconds_to_next());
    if (waits[0].revents != 0) return;
    auto connection = connections_.begin();
    for (std::size_t i = 0; i < before; ++i, ++connection) {
      const int events = waits[2 + i].revents;
      // A rank that waits for keys is not read from; its end must be noticed all the same.
      if (!connection->wanted.empty() && (events & (POLLHUP | POLLERR)) != 0)
        connection->over = true;
      else if ((events & (POLLIN | POLLHUP | POLLERR)) != 0)
        read_from(*connection);
    }
    if (waits[1].revents != 0) accept_all();
    answer_waits();
    for (Connection& next : connections_)
      if (!next.out.empty() && !next.over) write_to(next);
    drop_silent();
    std::erase_if(connections_, [](const Connection& next) { return next.over; });
  }
}

int MeetingServer::Loop::milliseconds_to_next() const {
  Clock::time_point next = Clock::now() + std::chrono::seconds(10);
  for (const Connection& connection : connections_) {
    if (!connection.known) next = std::min(next, connection.since + kGreetingLimit);
    if (!connection.wanted.empty()) next = std::min(next, connection.wanted_until);
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, 10'000));
}

void MeetingServer::Loop::accept_all() {
  for (;;) {
    Descriptor made(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!made) {
      // Without descriptors the connection stays where it is: the longest silent one makes room.
      if (errno != EMFILE && errno != ENFILE) return;
      for (Connection& other : connections_)
        if (!other.known && !other.over) return turn_away(other, "had to make room");
      poll(nullptr, 0, 10);
      return;
    }
    Connection connection{.socket = std::move(made)};
    connection.peer = peer_in_words(connection.socket.get());
    const int yes = 1;
    if (place_.network) {
      setsockopt(connection.socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
      setsockopt(connection.socket.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
    }
    connection.out = std::string(kGreeting) + connection.nonce;
    connections_.push_back(std::move(connection));
    if (!is_own_user(connections_.back().socket.get()))
      turn_away(connections_.back(), "is a process of another user");
    const auto is_stranger = [](const Connection& c) { return !c.known && !c.over; };
    if (static_cast<std::size_t>(
            std::count_if(connections_.begin(), connections_.end(), is_stranger)) > kMostStrangers)
      turn_away(*std::find_if(connections_.begin(), connections_.end(), is_stranger),
                "had to make room for others");
  }
}

void MeetingServer::Loop::turn_away(Connection& connection, const std::string& what) {
  connection.over = true;
  if (!tell_ || told_ > kMostSentences) return;
  ++told_;
  if (told_ > kMostSentences)
    tell_("more strangers have connected to the meeting of the ranks; they are not reported");
  else
    tell_(
        fmt::format("a connection to the meeting of the ranks from {} {}: it is closed, the run "
                    "goes on",
                    connection.peer, what));
}

void MeetingServer::Loop::drop_silent() {
  const Clock::time_point now = Clock::now();
  for (Connection& connection : connections_)
    if (!connection.known && !connection.over && now - connection.since > kGreetingLimit)
      turn_away(connection, fmt::format("has not shown the secret of the run within {} s",
                                        kGreetingLimit.count()));
}

void MeetingServer::Loop::read_from(Connection& connection) {
  std::array<char, 65536> block{};
  while (!connection.over && connection.wanted.empty()) {
    const std::size_t most = connection.known ? block.size() : kRankHello - connection.in.size();
    const ssize_t got = recv(connection.socket.get(), block.data(), most, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      if (!connection.known) turn_away(connection, "ended without showing the secret of the run");
      connection.over = true;
      return;
    }
    connection.in.append(block.data(), static_cast<std::size_t>(got));
    if (!connection.known) greet(connection);
    if (connection.known) take_requests(connection);
  }
}

void MeetingServer::Loop::greet(Connection& connection) {
  const std::string_view hello = connection.in;
  const std::size_t compared = std::min(hello.size(), kGreeting.size());
  if (hello.substr(0, compared) != kGreeting.substr(0, compared))
    return turn_away(connection, "speaks another protocol");
  if (hello.size() < kRankHello) return;
  const std::string_view nonce = hello.substr(8, kNonceBytes);
  const std::string_view number = hello.substr(8 + kNonceBytes, 4);
  Digest shown{};
  std::copy_n(hello.begin() + 8 + kNonceBytes + 4, shown.size(), shown.begin());
  const bool knows =
      same_digest(shown, proof_of_rank(place_.secret, connection.nonce, nonce, number)) &&
      from_four_bytes(number) < static_cast<std::uint32_t>(place_.world);
  const Digest proof = knows ? proof_of_server(place_.secret, connection.nonce, nonce) : Digest{};
  connection.out += (knows ? kWelcome : kRefusal) + std::string(as_text(proof));
  connection.in.clear();
  connection.known = knows;
  if (knows) return;
  write_to(connection);
  turn_away(connection, "showed a wrong secret");
}

void MeetingServer::Loop::take_requests(Connection& connection) {
  while (connection.wanted.empty() && connection.in.size() >= 4) {
    const std::uint32_t size = from_four_bytes(connection.in);
    if (size > kLargestMessage) {
      connection.over = true;
      return;
    }
    if (connection.in.size() - 4 < size) return;
    const std::string request = connection.in.substr(4, size);
    connection.in.erase(0, 4 + std::size_t{size});
    if (!answer(connection, request)) {
      connection.over = true;
      return;
    }
  }
}

// False for what no rank sends.
bool MeetingServer::Loop::answer(Connection& connection, std::string_view request) {
  MessageReader reader(request);
  if (!request.empty() && request.front() == static_cast<char>(Request::wait)) {
    reader.kind();
    const auto patience = reader.number();
    if (!patience || *patience < 0) return false;
    while (!reader.at_end()) {
      const auto key = reader.text();
      if (!key) return false;
      connection.wanted.push_back(*key);
    }
    connection.wanted_until =
        Clock::now() + std::chrono::milliseconds(std::min<std::int64_t>(*patience, 600'000));
    changed_ = true;
    if (connection.wanted.empty()) connection.out += MessageWriter(1).framed();
    return true;
  }
  const auto reply = keys_.answer(request);
  if (!reply) return false;
  changed_ = true;
  connection.out += *reply;
  return true;
}

void MeetingServer::Loop::answer_waits() {
  // A request that was waiting behind an answered one may set keys for others.
  while (true) {
    const Clock::time_point now = Clock::now();
    const bool look = std::exchange(changed_, false);
    for (Connection& connection : connections_) {
      if (connection.wanted.empty() || connection.over) continue;
      const bool there = look && keys_.has_all(connection.wanted);
      if (!there && now < connection.wanted_until) continue;
      connection.wanted.clear();
      connection.out += MessageWriter(there ? 1 : 0).framed();
      take_requests(connection);
    }
    if (!changed_) return;
  }
}

void MeetingServer::Loop::write_to(Connection& connection) {
  while (!connection.out.empty()) {
    const ssize_t sent =
        send(connection.socket.get(), connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) {
      connection.over = true;
      return;
    }
    connection.out.erase(0, static_cast<std::size_t>(sent));
  }
}

MeetingServer::MeetingServer(const MeetingPlace& place, Tell tell) {
  Listening listening = listen_at(place);
  where_ = listening.where;
  loop_ = std::make_unique<Loop>(place, std::move(listening.socket), std::move(tell));
  thread_ = std::thread([this] { loop_->run(); });
}

MeetingServer::~MeetingServer() {
  loop_->end();
  thread_.join();
}

}  // namespace plait::runtime
