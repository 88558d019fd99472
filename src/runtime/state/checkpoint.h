#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/state/checkpoint_index.h"

namespace plait::runtime {

// The state of a training run, without any word of the plan it ran under: every parameter whole,
// under the name that it has in every plan, with what the optimizer remembers of it. A run resumes
// from it under any plan, on any number of devices. docs/runtime.md describes the files:
//
//   DIR/step-00000120/checkpoint.json                        what it is, what it has, checksums
//                     3.attention.qkv.weight.npy             fp32, as NumPy reads it
//                     3.attention.qkv.weight.first_moment.npy ...

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
  std::string directory_;
  std::string name_;
  std::string temporary_;
  CheckpointIndex index_;
};

// The path of the last checkpoint under a directory, sound or not; nothing when there is none.
// InputError when the directory cannot be read.
std::optional<std::string> latest_checkpoint(const std::string& directory);

// Reads one; values come from the disk as they are asked for, and are compared with their checksum.
class Checkpoint {
 public:
  // InputError when it is not one, is damaged, or is that of another step than its directory says.
  explicit Checkpoint(const std::string& path);

  // InputError when a file is missing, has another size, is not a regular file, or is not listed.
  // Its values are not read.
  void check_files() const;

  const CheckpointNote& note() const { return index_.note; }
  const std::string& path() const { return path_; }
  bool has(const std::string& name, StateKind kind) const;

  // The values of a parameter that is there, which must have this shape and be as they were saved:
  // InputError otherwise. Valid until the next call.
  std::span<const float> read(const std::string& name, StateKind kind,
                              const std::vector<std::int64_t>& shape);

  // InputError when its parameters are not just these (a checkpoint of another model), naming the
  // first that differs.
  void check_names(const std::vector<std::string>& names) const;

 private:
  std::string path_;
  CheckpointIndex index_;
  std::string bytes_;  // of the file that was read last
};

}  // namespace plait::runtime
