#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/state/token_file.h"

namespace plait::runtime {

// The state of a training run, without any word of the plan it ran under: every parameter whole,
// under the name that it has in every plan, with what the optimizer remembers of it. A run resumes
// from it under any plan, on any number of devices. docs/runtime.md describes the files:
//
//   DIR/step-00000120/checkpoint.json                        what it is, and what it has
//                     3.attention.qkv.weight.npy             fp32, as NumPy reads it
//                     3.attention.qkv.weight.first_moment.npy ...

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

// The directory is one run's as long as this lives: a second one would write into the same files.
// Ends with the process, however that ends. Makes the directory; InputError when it cannot, or when
// the directory is another run's. File systems that know no locks are taken at their word.
class CheckpointClaim {
 public:
  explicit CheckpointClaim(const std::string& directory);
  ~CheckpointClaim();
  CheckpointClaim(const CheckpointClaim&) = delete;
  CheckpointClaim& operator=(const CheckpointClaim&) = delete;

 private:
  int descriptor_;
};

// Writes one. Nobody sees it before commit(), which puts all of it on the disk first and then gives
// it its name in one move; a writer that dies leaves the checkpoints before it as they were.
class CheckpointWriter {
 public:
  // Makes the directory, and clears away what writers left that died. InputError when it cannot.
  CheckpointWriter(std::string directory, std::int64_t step);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Any name at most once for each kind; names without '/'.
  void add(const std::string& name, StateKind kind, const std::vector<std::int64_t>& shape,
           std::span<const float> values);
  // Gives its path. Older checkpoints beyond the last `keep` are removed; 0 = none. Waiting for the
  // disk may take long: `on_progress` is called again and again.
  std::string commit(const CheckpointNote& note, int keep,
                     const std::function<void()>& on_progress = {});

 private:
  struct Entry {
    std::vector<std::int64_t> shape;
    std::vector<StateKind> kinds;
  };
  std::string directory_;
  std::string name_;
  std::string temporary_;
  std::map<std::string, Entry> entries_;
};

// The path of the last complete checkpoint under a directory; nothing when there is none.
std::optional<std::string> latest_checkpoint(const std::string& directory);

// Reads one; values come from the disk as they are asked for.
class Checkpoint {
 public:
  explicit Checkpoint(const std::string& path);  // InputError when it is not one

  const CheckpointNote& note() const { return note_; }
  const std::string& path() const { return path_; }
  bool has(const std::string& name, StateKind kind) const;

  // The values of a parameter that is there, which must have this shape: InputError otherwise.
  // Valid until the next call.
  std::span<const float> read(const std::string& name, StateKind kind,
                              const std::vector<std::int64_t>& shape);

  // InputError when its parameters are not just these (a checkpoint of another model), naming the
  // first that differs.
  void check_names(const std::vector<std::string>& names) const;

 private:
  std::string path_;
  CheckpointNote note_;
  std::map<std::string, std::pair<std::vector<std::int64_t>, std::vector<StateKind>>> entries_;
  std::unique_ptr<MappedFile> file_;
};

}  // namespace plait::runtime
