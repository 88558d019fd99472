#include "runtime/meet/wire.h"

namespace plait::runtime {
namespace {

template <typename Number>
std::string little_endian(Number value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(value); ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

template <typename Number>
Number from_little_endian(std::string_view bytes) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof(value); ++i)
    value |= static_cast<Number>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

}  // namespace

std::string four_bytes(std::uint32_t value) { return little_endian(value); }

std::uint32_t from_four_bytes(std::string_view bytes) {
  return from_little_endian<std::uint32_t>(bytes);
}

Digest proof_of_rank(const std::string& secret, std::string_view server_nonce,
                     std::string_view rank_nonce, std::string_view number) {
  return hmac_sha256(secret,
                     std::string("rank").append(server_nonce).append(rank_nonce).append(number));
}

Digest proof_of_server(const std::string& secret, std::string_view server_nonce,
                       std::string_view rank_nonce) {
  return hmac_sha256(secret, std::string("server").append(server_nonce).append(rank_nonce));
}

MessageWriter& MessageWriter::text(std::string_view text) {
  bytes_ += four_bytes(static_cast<std::uint32_t>(text.size()));
  bytes_ += text;
  return *this;
}

MessageWriter& MessageWriter::number(std::int64_t value) {
  bytes_ += little_endian(static_cast<std::uint64_t>(value));
  return *this;
}

std::string MessageWriter::framed() const {
  return four_bytes(static_cast<std::uint32_t>(bytes_.size())) + bytes_;
}

std::optional<char> MessageReader::kind() {
  if (rest_.empty()) return std::nullopt;
  const char first = rest_.front();
  rest_.remove_prefix(1);
  return first;
}

std::optional<std::string> MessageReader::text() {
  if (rest_.size() < 4) return std::nullopt;
  const std::uint32_t size = from_four_bytes(rest_);
  if (rest_.size() - 4 < size) return std::nullopt;
  std::string out(rest_.substr(4, size));
  rest_.remove_prefix(4 + std::size_t{size});
  return out;
}

std::optional<std::int64_t> MessageReader::number() {
  if (rest_.size() < 8) return std::nullopt;
  const auto value = static_cast<std::int64_t>(from_little_endian<std::uint64_t>(rest_));
  rest_.remove_prefix(8);
  return value;
}

}  // namespace plait::runtime
