#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace plait::runtime {

// A regular file that is read in pieces. It may change under the reader: bytes that are not there
// any more are an InputError, where a file that is mapped into memory would end the process.
class RegularFile {
 public:
  // InputError when it cannot be opened or is not a regular file; a pipe is not waited for.
  explicit RegularFile(const std::string& path);
  ~RegularFile();
  RegularFile(RegularFile&& other) noexcept;
  RegularFile(const RegularFile&) = delete;
  RegularFile& operator=(const RegularFile&) = delete;

  std::int64_t size() const { return size_; }  // when it was opened
  void read(std::int64_t begin, std::span<char> into) const;
  std::string text() const;  // all of it

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace plait::runtime
