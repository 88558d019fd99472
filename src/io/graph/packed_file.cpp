#include "io/graph/packed_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace plait {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 16;
constexpr int kGzip = 16 + MAX_WBITS;

}  // namespace

struct PackedFile::Source {
  std::string path;
  std::size_t most = 0;
  std::size_t given = 0;
  std::FILE* file = nullptr;
  std::vector<char> packed = std::vector<char>(kBlock);
  std::vector<char> plain = std::vector<char>(kBlock);
  z_stream state{};
  bool gzip = false;
  bool inside = false;  // a part of the gzip file that has not ended
  bool over = false;

  ~Source() {
    if (gzip) inflateEnd(&state);
    if (file != nullptr && file != stdin) std::fclose(file);
  }

  void read_block() {
    const std::size_t got = std::fread(packed.data(), 1, kBlock, file);
    if (got == 0 && std::ferror(file)) throw InputError(path, std::strerror(errno));
    state.next_in = reinterpret_cast<Bytef*>(packed.data());
    state.avail_in = static_cast<uInt>(got);
    if (got == 0) over = true;
  }

  void begin() {
    read_block();
    const auto byte = [&](int i) { return static_cast<unsigned char>(packed[i]); };
    gzip = state.avail_in >= 2 && byte(0) == 0x1f && byte(1) == 0x8b;
    if (!gzip) return;
    if (inflateInit2(&state, kGzip) != Z_OK) throw std::bad_alloc();
    inside = true;
  }

  std::size_t unpack() {
    state.next_out = reinterpret_cast<Bytef*>(plain.data());
    state.avail_out = kBlock;
    while (state.avail_out == kBlock) {
      if (state.avail_in == 0) read_block();
      if (over && !inside) return 0;
      if (over) throw InputError(path, "is truncated: its gzip data ends too early");
      if (!inside) inflateReset(&state);
      inside = true;
      const int status = inflate(&state, Z_NO_FLUSH);
      if (status == Z_STREAM_END) inside = false;
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      if (status != Z_OK && status != Z_STREAM_END)
        throw InputError(path, fmt::format("is damaged: its gzip data cannot be unpacked ({})",
                                           state.msg != nullptr ? state.msg : "wrong format"));
    }
    return kBlock - state.avail_out;
  }
};

PackedFile::PackedFile(const std::string& path, std::size_t most)
    : source_(std::make_unique<Source>()) {
  source_->path = path;
  source_->most = most;
  struct stat status {};
  if (path == "-") {
    source_->file = stdin;
  } else {
    if (stat(path.c_str(), &status) != 0) throw InputError(path, std::strerror(errno));
    if (S_ISDIR(status.st_mode)) throw InputError(path, "is a directory, a file is needed");
    source_->file = std::fopen(path.c_str(), "rbe");
    if (source_->file == nullptr) throw InputError(path, std::strerror(errno));
  }
  source_->begin();
}

PackedFile::~PackedFile() = default;

void PackedFile::fill() {
  Source& source = *source_;
  if (source.gzip) {
    const std::size_t got = source.unpack();
    next_ = source.plain.data();
    end_ = next_ + got;
  } else {
    if (source.state.avail_in == 0 && !source.over) source.read_block();
    next_ = source.packed.data();
    end_ = next_ + source.state.avail_in;
    source.state.avail_in = 0;
  }
  source.given += static_cast<std::size_t>(end_ - next_);
  if (source.given > source.most)
    throw InputError(
        source.path,
        fmt::format("has more than {} MiB of text, which is too much to read", source.most >> 20));
}

}  // namespace plait
