#pragma once

// .npy files as NumPy writes them, for tests.

#include <cstring>
#include <string>
#include <vector>

namespace plait::samples {

template <typename Value>
std::string npy_bytes(const std::vector<Value>& values, const std::string& dtype) {
  std::string header = "{'descr': '" + dtype + "', 'fortran_order': False, 'shape': (" +
                       std::to_string(values.size()) + ",), }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += '\x01';
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  const std::size_t at = bytes.size();
  bytes.resize(at + values.size() * sizeof(Value));
  if (!values.empty()) std::memcpy(bytes.data() + at, values.data(), values.size() * sizeof(Value));
  return bytes;
}

inline std::string npy(const std::vector<double>& values) { return npy_bytes(values, "<f8"); }

}  // namespace plait::samples
