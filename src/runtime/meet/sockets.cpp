#include "runtime/meet/sockets.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

namespace plait::runtime {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kBacklog = 1024;
constexpr std::chrono::seconds kConnectLimit(5);

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

Address unix_address(const std::string& name) {
  Address address;
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  // A zero byte first: the name is not a file.
  const std::size_t length = std::min(name.size(), sizeof(un.sun_path) - 1);
  std::memcpy(un.sun_path + 1, name.data(), length);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  std::memcpy(&address.storage, &un, sizeof(un));
  return address;
}

void set_port(Address& address, int port) {
  const auto number = htons(static_cast<std::uint16_t>(port));
  if (address.storage.ss_family == AF_INET)
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = number;
  else
    reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port = number;
}

std::vector<Address> addresses_of(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int fault = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (fault != 0)
    throw MeetingFault(fmt::format("{} (MASTER_ADDR) is not the name of a machine: {}", host,
                                   gai_strerror(fault)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  std::vector<Address> out;
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next) {
    Address address;
    address.size =
        static_cast<socklen_t>(std::min<std::size_t>(next->ai_addrlen, sizeof(address.storage)));
    std::memcpy(&address.storage, next->ai_addr, address.size);
    out.push_back(address);
  }
  return out;
}

std::string host_text(const Address& address) {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address.get(), address.size, text.data(), text.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0)
    return "?";
  return text.data();
}

int port_of(const Address& address) {
  return ntohs(address.storage.ss_family == AF_INET
                   ? reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port
                   : reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port);
}

bool is_loopback_text(const std::string& text) { return text.starts_with("127.") || text == "::1"; }

// This machine's addresses, with the names of their interfaces.
std::vector<std::pair<std::string, Address>> own_addresses() {
  ifaddrs* found = nullptr;
  std::vector<std::pair<std::string, Address>> out;
  if (getifaddrs(&found) != 0) return out;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(found, freeifaddrs);
  for (const ifaddrs* next = found; next != nullptr; next = next->ifa_next) {
    if (next->ifa_addr == nullptr) continue;
    const int family = next->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    Address address;
    address.size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    std::memcpy(&address.storage, next->ifa_addr, address.size);
    out.emplace_back(next->ifa_name, address);
  }
  return out;
}

// The address that this machine would send from to the outside world. No packet is sent.
std::string address_of_default_route() {
  const Descriptor probe(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in far{};
  far.sin_family = AF_INET;
  far.sin_port = htons(9);
  inet_pton(AF_INET, "192.0.2.1", &far.sin_addr);  // of RFC 5737: nobody has it
  if (!probe || connect(probe.get(), reinterpret_cast<sockaddr*>(&far), sizeof(far)) != 0)
    return "";
  return own_address(probe.get());
}

// The address to listen on, and its interface.
std::pair<std::string, Address> chosen_interface(const MeetingPlace& place) {
  const auto mine = own_addresses();
  const auto with_address = [&](const std::string& text) {
    return std::find_if(mine.begin(), mine.end(),
                        [&](const auto& own) { return host_text(own.second) == text; });
  };
  if (!place.interface.empty()) {
    for (const int family : {AF_INET, AF_INET6})
      for (const auto& own : mine)
        if (own.first == place.interface && own.second.storage.ss_family == family) return own;
    throw MeetingFault(
        fmt::format("this machine has no interface {} with an address "
                    "(GLOO_SOCKET_IFNAME)",
                    place.interface));
  }
  for (const Address& address : addresses_of(place.host, place.port)) {
    const std::string text = host_text(address);
    if (const auto found = with_address(text); found != mine.end() && !is_loopback_text(text))
      return *found;
    if (!is_loopback_text(text)) continue;
    if (const auto found = with_address(address_of_default_route()); found != mine.end())
      return *found;
  }
  throw MeetingFault(
      fmt::format("{} (MASTER_ADDR) is not an address of the machine of rank 0: set "
                  "it to one, or name the interface with GLOO_SOCKET_IFNAME",
                  place.host));
}

[[noreturn]] void place_taken(const MeetingPlace& place) {
  throw MeetingFault(fmt::format(
      "rank 0 cannot listen at {}: {}", place.in_words(),
      errno == EADDRINUSE ? "another program has the port, perhaps another run: set MASTER_PORT"
                          : std::strerror(errno)));
}

bool wait_for(int socket, short event, Clock::time_point deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{.fd = socket, .events = event, .revents = 0};
    const int ready = poll(&wait, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (ready == 0 && Clock::now() >= deadline) return false;
  }
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

Listening listen_at(const MeetingPlace& place) {
  Address address = unix_address(place.name);
  std::string where = place.in_words();
  if (place.network) {
    auto chosen = chosen_interface(place);
    address = chosen.second;
    set_port(address, place.port);
    MeetingPlace there = place;
    there.host = host_text(address);
    where = fmt::format("{} on {}", there.in_words(), chosen.first);
  }
  Descriptor made(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  if (made && place.network) setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (!made || bind(made.get(), address.get(), address.size) != 0 ||
      listen(made.get(), kBacklog) != 0)
    place_taken(place);
  return {std::move(made), where};
}

Descriptor connect_to(const MeetingPlace& place, std::string& errno_text) {
  const std::vector<Address> candidates =
      place.network ? addresses_of(place.host, place.port) : std::vector{unix_address(place.name)};
  for (const Address& address : candidates) {
    Descriptor made(
        socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!made) continue;
    int fault = connect(made.get(), address.get(), address.size) == 0 ? 0 : errno;
    if (fault == EINPROGRESS) {
      socklen_t size = sizeof(fault);
      fault = wait_for(made.get(), POLLOUT, Clock::now() + kConnectLimit) ? 0 : ETIMEDOUT;
      if (fault == 0) getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &fault, &size);
    }
    errno_text = std::strerror(fault);
    if (fault != 0) continue;
    if (!is_own_user(made.get()))
      throw MeetingFault(
          fmt::format("a process of another user listens where the ranks of this "
                      "run meet (port {}): set MASTER_PORT",
                      place.port));
    const int yes = 1;
    if (place.network) {
      setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
      setsockopt(made.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
    }
    return made;
  }
  return Descriptor();
}

bool is_own_user(int socket) {
  Address address;
  address.size = sizeof(address.storage);
  if (getsockname(socket, address.get(), &address.size) != 0) return false;
  if (address.storage.ss_family != AF_UNIX) return true;
  ucred peer{};
  socklen_t size = sizeof(peer);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == getuid() || peer.uid == 0);
}

std::string own_address(int socket) {
  Address address;
  address.size = sizeof(address.storage);
  if (getsockname(socket, address.get(), &address.size) != 0 ||
      address.storage.ss_family == AF_UNIX)
    return "127.0.0.1";
  return host_text(address);
}

std::string peer_in_words(int socket) {
  Address address;
  address.size = sizeof(address.storage);
  if (getpeername(socket, address.get(), &address.size) != 0) return "a stranger";
  if (address.storage.ss_family == AF_UNIX) return "a process of this machine";
  return fmt::format("{} port {}", host_text(address), port_of(address));
}

bool send_all(int socket, std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (sent < 0 && errno == EAGAIN && !wait_for(socket, POLLOUT, deadline)) return false;
  }
  return true;
}

bool receive_all(int socket, std::size_t size, std::string& into, Clock::time_point deadline) {
  std::array<char, 65536> block{};
  into.clear();
  while (into.size() < size) {
    const ssize_t got = recv(socket, block.data(), std::min(block.size(), size - into.size()), 0);
    if (got > 0) into.append(block.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (got < 0 && errno == EAGAIN && !wait_for(socket, POLLIN, deadline)) return false;
  }
  return true;
}

}  // namespace plait::runtime
