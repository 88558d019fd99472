#include "runtime/state/checksum.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

namespace plait::runtime {
namespace {

static_assert(std::endian::native == std::endian::little, "XXH64 reads little-endian words");

constexpr std::uint64_t kPrime1 = 0x9e3779b185ebca87;
constexpr std::uint64_t kPrime2 = 0xc2b2ae3d27d4eb4f;
constexpr std::uint64_t kPrime3 = 0x165667b19e3779f9;
constexpr std::uint64_t kPrime4 = 0x85ebca77c2b2ae63;
constexpr std::uint64_t kPrime5 = 0x27d4eb2f165667c5;
constexpr std::size_t kStripe = 32;

template <typename Word>
std::uint64_t word_at(const char* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

std::uint64_t round_of(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

void add_stripe(std::array<std::uint64_t, 4>& lanes, const char* bytes) {
  for (std::size_t i = 0; i < lanes.size(); ++i)
    lanes[i] = round_of(lanes[i], word_at<std::uint64_t>(bytes + 8 * i));
}

std::uint64_t merged(const std::array<std::uint64_t, 4>& lanes) {
  std::uint64_t sum = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
                      std::rotl(lanes[3], 18);
  for (const std::uint64_t lane : lanes) sum = (sum ^ round_of(0, lane)) * kPrime1 + kPrime4;
  return sum;
}

}  // namespace

void Checksum::add(std::string_view bytes) {
  size_ += bytes.size();
  if (!rest_.empty()) {
    const std::size_t more = std::min(kStripe - rest_.size(), bytes.size());
    rest_ += bytes.substr(0, more);
    bytes.remove_prefix(more);
    if (rest_.size() < kStripe) return;
    add_stripe(lanes_, rest_.data());
    rest_.clear();
  }
  for (; bytes.size() >= kStripe; bytes.remove_prefix(kStripe)) add_stripe(lanes_, bytes.data());
  rest_ = bytes;
}

std::uint64_t Checksum::value() const {
  std::uint64_t sum = (size_ >= kStripe ? merged(lanes_) : kPrime5) + size_;
  const char* bytes = rest_.data();
  std::size_t left = rest_.size();
  for (; left >= 8; bytes += 8, left -= 8)
    sum = std::rotl(sum ^ round_of(0, word_at<std::uint64_t>(bytes)), 27) * kPrime1 + kPrime4;
  if (left >= 4) {
    sum = std::rotl(sum ^ word_at<std::uint32_t>(bytes) * kPrime1, 23) * kPrime2 + kPrime3;
    bytes += 4;
    left -= 4;
  }
  for (; left > 0; ++bytes, --left)
    sum = std::rotl(sum ^ word_at<std::uint8_t>(bytes) * kPrime5, 11) * kPrime1;
  sum = (sum ^ (sum >> 33)) * kPrime2;
  sum = (sum ^ (sum >> 29)) * kPrime3;
  return sum ^ (sum >> 32);
}

std::uint64_t checksum_of(std::string_view bytes) {
  Checksum checksum;
  checksum.add(bytes);
  return checksum.value();
}

std::string checksum_text(std::uint64_t value) { return fmt::format("{:016x}", value); }

std::optional<std::uint64_t> checksum_from(std::string_view text) {
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (read.ec != std::errc() || checksum_text(value) != text) return std::nullopt;
  return value;
}

}  // namespace plait::runtime
