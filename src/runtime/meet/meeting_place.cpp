#include "runtime/meet/meeting_place.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"
#include "runtime/launch/run_secret.h"
#include "runtime/meet/sha256.h"

namespace plait::runtime {
namespace {

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return out;
}

bool is_loopback(const std::string& address) {
  return address.empty() || address == "localhost" || address == "::1" ||
         address.starts_with("127.");
}

}  // namespace

std::string MeetingPlace::in_words() const {
  if (!network) return "a socket of this machine";
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

MeetingPlace meeting_place(const RankPlace& place) {
  MeetingPlace meeting{.world = place.world,
                       .host = place.address,
                       .port = place.port,
                       .interface = place.interface,
                       .secret = place.secret};
  meeting.network = !is_loopback(place.address) && place.local_world != place.world;
  if (meeting.network && meeting.secret.empty())
    throw InputError(
        std::string("environment variable ") + kSecretVariable,
        fmt::format("is not set: {} started ranks on several machines, which must prove to each "
                    "other that they belong together. Set it to the same secret for all ranks "
                    "(export {}=$(openssl rand -hex 32)), or name a file with {}",
                    place.launcher, kSecretVariable, kSecretFileVariable));
  // Nobody else can guess the name that follows from a secret, so nobody can take it first.
  meeting.name =
      meeting.secret.empty()
          ? fmt::format("plait/{}/{}", getuid(), place.port)
          : "plait/" + hex(as_text(hmac_sha256(meeting.secret,
                                               fmt::format("name of the socket {}", place.port))));
  return meeting;
}

}  // namespace plait::runtime
