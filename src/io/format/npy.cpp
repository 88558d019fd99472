#include "io/format/npy.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "io/format/checked_number.h"
#include "io/format/json_reader.h"

namespace plait {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMostValues = 1'000'000;

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// What follows `'key':` in the header, a Python dictionary on one line, up to one of `ends`.
std::string_view value_of(const std::string& name, std::string_view header, std::string_view key,
                          char end) {
  const std::string quoted = fmt::format("'{}':", key);
  const std::size_t at = header.find(quoted);
  const std::size_t stop = at == header.npos ? at : header.find(end, at + quoted.size());
  if (stop == header.npos)
    throw InputError(name, fmt::format("is a damaged .npy file: its header has no {}", quoted));
  std::string_view value = header.substr(at + quoted.size(), stop - at - quoted.size());
  while (value.starts_with(' ')) value.remove_prefix(1);
  return value;
}

// "(30," -> 30
std::size_t length_of(const std::string& name, std::string_view shape) {
  std::size_t length = 0;
  const char* begin = shape.data() + (shape.starts_with('(') ? 1 : 0);
  const char* end = shape.data() + shape.size();
  const auto [stop, fault] = std::from_chars(begin, end, length);
  if (fault != std::errc() || std::string_view(stop, end) != ",")
    throw InputError(name, fmt::format("must have one dimension, its shape is {})",
                                       std::string(shape.substr(0, 40))));
  if (length > kMostValues)
    throw InputError(name, fmt::format("has {} values, at most {} are read", length, kMostValues));
  return length;
}

}  // namespace

std::vector<double> parse_npy(const std::string& name, std::string_view bytes) {
  if (!bytes.starts_with(kMagic))
    throw InputError(name, "is not a .npy file: it does not start with \\x93NUMPY");
  const std::string truncated = "is a truncated .npy file";
  if (bytes.size() < 12) throw InputError(name, truncated);
  const int version = static_cast<unsigned char>(bytes[6]);
  if (version < 1 || version > 3)
    throw InputError(name, fmt::format("has .npy version {}, 1 to 3 are known", version));
  const std::size_t size_field = version == 1 ? 2 : 4;
  const std::uint64_t header_size = little_endian(bytes.substr(8, size_field));
  const std::size_t header_at = 8 + size_field;
  if (header_size > bytes.size() - header_at) throw InputError(name, truncated);
  const std::string_view header = bytes.substr(header_at, header_size);
  const std::string_view dtype = value_of(name, header, "descr", ',');
  const bool wide = dtype == "'<f8'";
  if (!wide && dtype != "'<f4'")
    throw InputError(name, fmt::format("must hold little-endian float64 or float32, holds {}",
                                       std::string(dtype.substr(0, 40))));
  const std::size_t count = length_of(name, value_of(name, header, "shape", ')'));
  const std::size_t width = wide ? 8 : 4;
  const std::string_view values = bytes.substr(header_at + header_size);
  if (values.size() != count * width)
    throw InputError(name, values.size() < count * width
                               ? truncated
                               : fmt::format("has {} bytes after its {} values",
                                             values.size() - count * width, count));
  std::vector<double> out;
  out.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = little_endian(values.substr(i * width, width));
    double value = 0;
    if (wide) {
      std::memcpy(&value, &bits, sizeof value);
    } else {
      const auto narrow = static_cast<std::uint32_t>(bits);
      float single = 0;
      std::memcpy(&single, &narrow, sizeof single);
      value = single;
    }
    if (!std::isfinite(value))
      throw InputError(name, fmt::format("value {} is not a finite number", i));
    const auto inside = in_range(value);
    if (!inside)
      throw InputError(name, fmt::format("value {} must be 0 or from {} to {}, is {}", i,
                                         kSmallestQuantity, kLargestQuantity, value));
    out.push_back(*inside);
  }
  return out;
}

std::vector<double> read_npy_file(const std::string& path) {
  return parse_npy(path, read_text_file(path));
}

}  // namespace plait
