#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plait::runtime {

// XXH64 (Collet, the xxHash specification, seed 0): finds damage, at the speed of memory. It does
// not protect against somebody who means to deceive. `xxh64sum` gives the same digits.
class Checksum {
 public:
  void add(std::string_view bytes);
  std::uint64_t value() const;

 private:
  std::array<std::uint64_t, 4> lanes_{0x60ea27eeadc0b5d6, 0xc2b2ae3d27d4eb4f, 0,
                                      0x61c8864e7a143579};
  std::uint64_t size_ = 0;
  std::string rest_;  // fewer than 32 bytes
};

std::uint64_t checksum_of(std::string_view bytes);

// 16 hexadecimal digits, and back; nothing for other texts.
std::string checksum_text(std::uint64_t value);
std::optional<std::uint64_t> checksum_from(std::string_view text);

}  // namespace plait::runtime
