#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace plait {

// Reads a file byte by byte without holding all of it. What begins as gzip does is unpacked, in as
// many parts as there are. "-" is stdin. InputError for what cannot be read, is truncated or
// damaged, or unpacks to more than `most` bytes.
class PackedFile {
 public:
  PackedFile(const std::string& path, std::size_t most);
  ~PackedFile();
  PackedFile(const PackedFile&) = delete;
  PackedFile& operator=(const PackedFile&) = delete;

  bool at_end() {
    if (next_ == end_) fill();
    return next_ == end_;
  }
  char peek() const { return *next_; }  // not at the end
  void skip() { ++next_; }

  struct Source;  // the file and zlib's state; known to packed_file.cpp only

 private:
  void fill();

  std::unique_ptr<Source> source_;
  const char* next_ = nullptr;
  const char* end_ = nullptr;
};

}  // namespace plait
