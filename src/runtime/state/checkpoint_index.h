#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace plait::runtime {

// What is stored of a parameter.
enum class StateKind { value, first_moment, second_moment };
std::string_view name_of(StateKind kind);  // value, first_moment, second_moment

struct CheckpointNote {
  std::int64_t step = 0;     // that were done: the next one has this number
  std::uint64_t seed = 0;    // of the samples
  std::string model;         // its name
  std::string tokens;        // the token file; "" = synthetic samples
  std::int64_t samples = 0;  // that were seen, over all steps
  std::string optimizer;     // its name
};

// A parameter and the checksums of its files.
struct SavedParameter {
  std::vector<std::int64_t> shape;
  std::map<StateKind, std::uint64_t> checksums;
};

// checkpoint.json: what a checkpoint is, and what it has. It has a checksum of its own, over the
// text of the file with zeros for the digits of that checksum.
struct CheckpointIndex {
  CheckpointNote note;
  std::map<std::string, SavedParameter> parameters;
};

inline constexpr const char* kIndexName = "checkpoint.json";
std::string index_text(const CheckpointIndex& index);
// InputError for what index_text() did not write. `path` is the file, for messages.
CheckpointIndex index_from(const std::string& path, const std::string& text);

// The file of a parameter, its first bytes and its size: a NumPy file (format 1.0) of fp32.
std::string npy_name(const std::string& parameter, StateKind kind);
std::string npy_head(const std::vector<std::int64_t>& shape);
std::int64_t count_of(const std::vector<std::int64_t>& shape);
std::int64_t npy_size(const std::vector<std::int64_t>& shape);

}  // namespace plait::runtime
