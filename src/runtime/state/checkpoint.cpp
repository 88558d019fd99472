#include "runtime/state/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"

namespace plait::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kKindNames{"value", "first_moment", "second_moment"};
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kUnfinished = ".unfinished-";
constexpr double kMostCount = 9e15;  // whole numbers in JSON

std::string file_name(const std::string& name, StateKind kind) {
  return kind == StateKind::value ? name + ".npy" : fmt::format("{}.{}.npy", name, name_of(kind));
}

std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

// The head of a NumPy file (format 1.0) of fp32 in C order, padded to a multiple of 64 bytes.
std::string npy_head(const std::vector<std::int64_t>& shape) {
  std::string sizes;
  for (const std::int64_t size : shape) sizes += fmt::format("{}, ", size);
  std::string text =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", sizes);
  const std::size_t before = 10;
  text.append((64 - (before + text.size() + 1) % 64) % 64, ' ');
  text += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(text.size() & 0xff);
  head += static_cast<char>(text.size() >> 8);
  return head + text;
}

[[noreturn]] void cannot_write(const std::string& path) {
  throw InputError(path, std::string("cannot be written: ") + std::strerror(errno));
}

void write_all(int descriptor, const char* bytes, std::size_t size, const std::string& path) {
  while (size > 0) {
    const ssize_t written = write(descriptor, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot_write(path);
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
}

void sync_path(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && fsync(descriptor) == 0;
  const int error = errno;
  if (descriptor >= 0) close(descriptor);
  errno = error;
  if (!synced) cannot_write(path);
}

// step-00000120 -> 120; nothing for other names.
std::optional<std::int64_t> step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string digits = name.substr(kPrefix.size());
  if (digits.empty() || digits.size() > 15 ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoll(digits);
}

// Complete ones, by step.
std::map<std::int64_t, std::string> checkpoints_in(const std::string& directory) {
  std::map<std::int64_t, std::string> found;
  std::error_code fault;
  for (const auto& entry : fs::directory_iterator(directory, fault))
    if (const auto step = step_of(entry.path().filename().string());
        step && fs::exists(entry.path() / "checkpoint.json", fault))
      found[*step] = entry.path().string();
  return found;
}

std::int64_t whole_number(const JsonValue& json) {
  const double value = json.at_least(0);
  if (value > kMostCount || value != static_cast<double>(static_cast<std::int64_t>(value)))
    throw InputError(json.where(), "must be a whole number");
  return static_cast<std::int64_t>(value);
}

}  // namespace

std::string_view name_of(StateKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

CheckpointClaim::CheckpointClaim(const std::string& directory) {
  std::error_code fault;
  fs::create_directories(directory, fault);
  descriptor_ = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) cannot_write(directory);
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  close(descriptor_);
  throw InputError(directory, "another run saves its checkpoints there: name another directory");
}

CheckpointClaim::~CheckpointClaim() { close(descriptor_); }

CheckpointWriter::CheckpointWriter(std::string directory, std::int64_t step)
    : directory_(std::move(directory)), name_(fmt::format("{}{:08}", kPrefix, step)) {
  std::error_code fault;
  fs::create_directories(directory_, fault);
  for (const auto& entry : fs::directory_iterator(directory_, fault))
    if (entry.path().filename().string().starts_with(kUnfinished)) {
      std::error_code ignored;
      fs::remove_all(entry.path(), ignored);
    }
  temporary_ = (fs::path(directory_) / fmt::format("{}{}", kUnfinished, name_)).string();
  fs::create_directory(temporary_, fault);
  if (!fs::is_directory(temporary_))
    throw InputError(directory_, "cannot be written: " + fault.message());
}

CheckpointWriter::~CheckpointWriter() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void CheckpointWriter::add(const std::string& name, StateKind kind,
                           const std::vector<std::int64_t>& shape, std::span<const float> values) {
  PLAIT_CHECK(!name.empty() && name.find('/') == std::string::npos);
  PLAIT_CHECK(count_of(shape) == static_cast<std::int64_t>(values.size()));
  Entry& entry = entries_[name];
  PLAIT_CHECK(entry.kinds.empty() || entry.shape == shape);
  PLAIT_CHECK(std::find(entry.kinds.begin(), entry.kinds.end(), kind) == entry.kinds.end());
  entry.shape = shape;
  entry.kinds.push_back(kind);
  const std::string path = (fs::path(temporary_) / file_name(name, kind)).string();
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) cannot_write(path);
  try {
    const std::string head = npy_head(shape);
    write_all(descriptor, head.data(), head.size(), path);
    write_all(descriptor, reinterpret_cast<const char*>(values.data()), values.size_bytes(), path);
  } catch (...) {
    close(descriptor);
    throw;
  }
  // Begins to go to the disk while the next one is written; commit() waits for all of them.
  sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
  close(descriptor);
}

std::string CheckpointWriter::commit(const CheckpointNote& note, int keep,
                                     const std::function<void()>& on_progress) {
  std::vector<std::string> parameters;
  for (const auto& [name, entry] : entries_) {
    std::vector<std::string> shape, kinds;
    for (const std::int64_t size : entry.shape) shape.push_back(std::to_string(size));
    for (const StateKind kind : entry.kinds) kinds.push_back(json_text(name_of(kind)));
    parameters.push_back(JsonObject()
                             .text("name", name)
                             .json("shape", json_list(shape))
                             .json("kept", json_list(kinds))
                             .str());
  }
  const std::string index = (fs::path(temporary_) / "checkpoint.json").string();
  write_text_file(index, lay_out_json(JsonObject()
                                          .number("plait_checkpoint", 1)
                                          .number("step", static_cast<double>(note.step))
                                          .text("seed", std::to_string(note.seed))
                                          .text("model", note.model)
                                          .text("tokens", note.tokens)
                                          .number("samples", static_cast<double>(note.samples))
                                          .text("optimizer", note.optimizer)
                                          .json("parameters", json_list(parameters))
                                          .str()));
  for (const auto& entry : fs::directory_iterator(temporary_)) {
    sync_path(entry.path().string());
    if (on_progress) on_progress();
  }
  sync_path(temporary_);
  std::string path = (fs::path(directory_) / name_).string();
  std::error_code fault;
  // The same step again changes places with the one that is there, in one move where the file
  // system can.
  if (fs::exists(path) &&
      renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(temporary_, fault);
  } else {
    fs::remove_all(path, fault);
    fs::rename(temporary_, path, fault);
    if (fault) throw InputError(path, "cannot be written: " + fault.message());
  }
  temporary_.clear();
  sync_path(directory_);
  if (keep > 0) {
    auto all = checkpoints_in(directory_);
    while (static_cast<int>(all.size()) > keep) {
      // Without its index it is none any more, whatever of it is still there.
      fs::remove(fs::path(all.begin()->second) / "checkpoint.json", fault);
      fs::remove_all(all.begin()->second, fault);
      all.erase(all.begin());
    }
  }
  return path;
}

std::optional<std::string> latest_checkpoint(const std::string& directory) {
  const auto all = checkpoints_in(directory);
  return all.empty() ? std::nullopt : std::optional(all.rbegin()->second);
}

Checkpoint::Checkpoint(const std::string& path) : path_(path) {
  const JsonValue root = read_json_file((fs::path(path) / "checkpoint.json").string());
  root.allow_only({"plait_checkpoint", "step", "seed", "model", "tokens", "samples", "optimizer",
                   "parameters"});
  root.at("plait_checkpoint").integer(1, 1);
  note_.step = whole_number(root.at("step"));
  const std::string seed = root.at("seed").text();
  const auto read = std::from_chars(seed.data(), seed.data() + seed.size(), note_.seed);
  if (read.ec != std::errc() || read.ptr != seed.data() + seed.size())
    throw InputError(root.at("seed").where(), "must be a whole number in quotes");
  note_.model = root.at("model").text();
  note_.tokens = root.at("tokens").text();
  note_.samples = whole_number(root.at("samples"));
  note_.optimizer = root.at("optimizer").text();
  for (const JsonValue& item : root.at("parameters").items()) {
    item.allow_only({"name", "shape", "kept"});
    const std::string name = item.at("name").text();
    if (name.empty() || name.find('/') != std::string::npos)
      throw InputError(item.at("name").where(), "is no name of a parameter");
    auto& [shape, kinds] = entries_[name];
    for (const JsonValue& size : item.at("shape").items()) shape.push_back(whole_number(size));
    for (const JsonValue& kind : item.at("kept").items())
      kinds.push_back(static_cast<StateKind>(kind.choice({kKindNames.begin(), kKindNames.end()})));
  }
}

bool Checkpoint::has(const std::string& name, StateKind kind) const {
  const auto found = entries_.find(name);
  return found != entries_.end() &&
         std::find(found->second.second.begin(), found->second.second.end(), kind) !=
             found->second.second.end();
}

std::span<const float> Checkpoint::read(const std::string& name, StateKind kind,
                                        const std::vector<std::int64_t>& shape) {
  PLAIT_CHECK(has(name, kind));
  if (entries_.at(name).first != shape)
    throw InputError(path_,
                     fmt::format("{} has the shape [{}] there, and [{}] in this model", name,
                                 fmt::join(entries_.at(name).first, ", "), fmt::join(shape, ", ")));
  const std::string file = (fs::path(path_) / file_name(name, kind)).string();
  const std::string head = npy_head(shape);
  const auto count = static_cast<std::size_t>(count_of(shape));
  file_ = std::make_unique<MappedFile>(file);
  const std::string_view text = file_->text();
  if (!text.starts_with(head) || text.size() != head.size() + count * sizeof(float))
    throw InputError(file, "is not what checkpoint.json says of it");
  return {reinterpret_cast<const float*>(text.data() + head.size()), count};
}

void Checkpoint::check_names(const std::vector<std::string>& names) const {
  for (const std::string& name : names)
    if (!entries_.contains(name))
      throw InputError(path_, fmt::format("has no {}, which the model has: it is of another model "
                                          "({})",
                                          name, note_.model));
  for (const auto& [name, entry] : entries_)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw InputError(path_, fmt::format("has {}, which the model has not: it is of another model "
                                          "({})",
                                          name, note_.model));
}

}  // namespace plait::runtime
