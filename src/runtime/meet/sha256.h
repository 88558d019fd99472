#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace plait::runtime {

// SHA-256 (FIPS 180-4) and HMAC (RFC 2104) over it: how ranks prove to each other that they know
// the secret of their run.
using Digest = std::array<std::uint8_t, 32>;

Digest sha256(std::string_view text);
Digest hmac_sha256(std::string_view key, std::string_view text);

// Compares in a time that does not depend on where the two differ.
bool same_digest(const Digest& a, const Digest& b);

std::string_view as_text(const Digest& digest);

}  // namespace plait::runtime
