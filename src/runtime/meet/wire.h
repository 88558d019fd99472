#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/meet/sha256.h"

namespace plait::runtime {

// What goes over the connection of a rank to the meeting server.
//
// First both sides prove that they know the secret of the run; every message has a fixed size, so a
// stranger cannot make the other side store anything:
//   server   kGreeting, its nonce (32 bytes)
//   rank     kGreeting, its nonce, its number (4 bytes), proof_of_rank
//   server   kWelcome or kRefusal (1 byte), proof_of_server
// Then the rank sends requests, and the server answers each: four bytes of length, little-endian,
// and that many bytes. An answer begins with one byte: 1 = found or done, 0 = not.
inline constexpr std::string_view kGreeting = "plaitmt1";
inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kServerHello = 8 + kNonceBytes;
inline constexpr std::size_t kRankHello = 8 + kNonceBytes + 4 + 32;
inline constexpr std::size_t kVerdict = 1 + 32;
inline constexpr char kWelcome = 'w';
inline constexpr char kRefusal = 'r';
inline constexpr std::uint32_t kLargestMessage = 256U << 20;

// A side that says nothing for this long during the greeting is a stranger.
inline constexpr std::chrono::seconds kGreetingLimit(6);

Digest proof_of_rank(const std::string& secret, std::string_view server_nonce,
                     std::string_view rank_nonce, std::string_view number);
Digest proof_of_server(const std::string& secret, std::string_view server_nonce,
                       std::string_view rank_nonce);

enum class Request : char {
  set = 's',          // key, value
  get = 'g',          // key -> value
  wait = 'w',         // milliseconds, keys -> nothing, once all keys are there
  add = 'a',          // key, number -> number
  compare_set = 'c',  // key, expected, desired -> value
  remove = 'd',       // key -> nothing
  count = 'n',        // -> number of keys
};

// Puts a message together: texts with four bytes of length before them, numbers of 8 bytes.
class MessageWriter {
 public:
  explicit MessageWriter(char kind) : bytes_(1, kind) {}
  MessageWriter& text(std::string_view text);
  MessageWriter& number(std::int64_t value);
  // With its length before it.
  std::string framed() const;

 private:
  std::string bytes_;
};

// Takes a message apart. What is not there is nothing, never a read beyond its end.
class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : rest_(bytes) {}
  std::optional<char> kind();
  std::optional<std::string> text();
  std::optional<std::int64_t> number();
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

std::string four_bytes(std::uint32_t value);
std::uint32_t from_four_bytes(std::string_view bytes);  // of at least four

}  // namespace plait::runtime
