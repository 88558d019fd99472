#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace plait::fuzz {

// How the bytes of a reader are built, for mutations that keep most of it.
enum class Shape { json, csv, text, bytes };

// A reader of other people's files under test. `read` must return, or throw InputError, for any
// bytes. It throws BrokenPromise when what was accepted does not keep what readers promise: writing
// it and reading that again gives the same, and an accepted model has a plan on one device whose
// step takes a finite time.
struct Reader {
  std::string_view name;
  Shape shape;
  void (*read)(const std::string& bytes);
};

class BrokenPromise : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// The one table of readers under test; each has a folder of its name in tests/fuzz/corpus.
std::span<const Reader> readers();
const Reader* reader_named(std::string_view name);

// True where the reader took the bytes, false where it refused them with InputError.
bool accepts(const Reader& reader, const std::string& bytes);

}  // namespace plait::fuzz
