#include "runtime/state/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "io/format/random_name.h"
#include "io/format/text_file.h"
#include "runtime/state/checksum.h"
#include "runtime/state/regular_file.h"

namespace plait::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kUnfinished = ".unfinished-";
constexpr std::int64_t kMostIndexBytes = std::int64_t{64} << 20;

std::string directory_name(std::int64_t step) { return fmt::format("{}{:08}", kPrefix, step); }

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
  const std::int64_t step = std::stoll(digits);
  return directory_name(step) == name ? std::optional(step) : std::nullopt;
}

std::map<std::int64_t, std::string> checkpoints_in(const std::string& directory) {
  std::map<std::int64_t, std::string> found;
  std::error_code fault;
  for (fs::directory_iterator entry(directory, fault), end; !fault && entry != end;
       entry.increment(fault))
    if (const auto step = step_of(entry->path().filename().string()))
      found[*step] = entry->path().string();
  if (fault && fault != std::errc::no_such_file_or_directory)
    throw InputError(directory, "cannot be read: " + fault.message());
  return found;
}

// Takes its name away first: half a checkpoint is never seen as one.
void remove_checkpoint(const std::string& path) {
  const fs::path doomed =
      fs::path(path).parent_path() / fmt::format("{}{}", kUnfinished, random_name());
  std::error_code ignored;
  fs::rename(path, doomed, ignored);
  fs::remove_all(doomed, ignored);
}

}  // namespace

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
    : directory_(std::move(directory)), name_(directory_name(step)) {
  std::error_code fault;
  fs::create_directories(directory_, fault);
  for (fs::directory_iterator entry(directory_, fault), end; !fault && entry != end;
       entry.increment(fault))
    if (entry->path().filename().string().starts_with(kUnfinished)) {
      std::error_code ignored;
      fs::remove_all(entry->path(), ignored);
    }
  // A name that nobody can know before, and that must be new.
  temporary_ =
      (fs::path(directory_) / fmt::format("{}{}-{}", kUnfinished, name_, random_name())).string();
  if (mkdir(temporary_.c_str(), 0777) != 0) {
    temporary_.clear();
    cannot_write(directory_);
  }
}

CheckpointWriter::~CheckpointWriter() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void CheckpointWriter::add(const std::string& name, StateKind kind,
                           const std::vector<std::int64_t>& shape, std::span<const float> values) {
  PLAIT_CHECK(!name.empty() && name.find('/') == std::string::npos);
  PLAIT_CHECK(count_of(shape) == static_cast<std::int64_t>(values.size()));
  SavedParameter& saved = index_.parameters[name];
  PLAIT_CHECK(saved.checksums.empty() || saved.shape == shape);
  PLAIT_CHECK(!saved.checksums.contains(kind));
  saved.shape = shape;
  const std::string path = (fs::path(temporary_) / npy_name(name, kind)).string();
  const int descriptor =
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor < 0) cannot_write(path);
  try {
    const std::string head = npy_head(shape);
    const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    write_all(descriptor, head.data(), head.size(), path);
    write_all(descriptor, bytes.data(), bytes.size(), path);
    Checksum checksum;
    checksum.add(head);
    checksum.add(bytes);
    saved.checksums[kind] = checksum.value();
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
  index_.note = note;
  write_text_file((fs::path(temporary_) / kIndexName).string(), index_text(index_));
  std::vector<std::string> files{(fs::path(temporary_) / kIndexName).string()};
  for (const auto& [name, saved] : index_.parameters)
    for (const auto& [kind, checksum] : saved.checksums)
      files.push_back((fs::path(temporary_) / npy_name(name, kind)).string());
  for (const std::string& file : files) {
    sync_path(file);
    if (on_progress) on_progress();
  }
  sync_path(temporary_);
  std::string path = (fs::path(directory_) / name_).string();
  // The same step again changes places with the one that is there, in one move where the file
  // system can.
  if (renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
  } else {
    remove_checkpoint(path);
    if (std::rename(temporary_.c_str(), path.c_str()) != 0) cannot_write(path);
  }
  temporary_.clear();
  sync_path(directory_);
  auto all = checkpoints_in(directory_);
  for (; keep > 0 && static_cast<int>(all.size()) > keep; all.erase(all.begin()))
    remove_checkpoint(all.begin()->second);
  return path;
}

std::optional<std::string> latest_checkpoint(const std::string& directory) {
  const auto all = checkpoints_in(directory);
  return all.empty() ? std::nullopt : std::optional(all.rbegin()->second);
}

Checkpoint::Checkpoint(const std::string& path) : path_(path) {
  const std::string file = (fs::path(path) / kIndexName).string();
  const RegularFile opened(file);
  if (opened.size() > kMostIndexBytes) throw InputError(file, "is larger than 64 MiB");
  index_ = index_from(file, opened.text());
  const std::string name = fs::path(path).filename().string();
  if (name != directory_name(index_.note.step))
    throw InputError(file, fmt::format("is of step {}, but lies in {}", index_.note.step, name));
}

void Checkpoint::check_files() const {
  std::set<std::string> listed{kIndexName};
  for (const auto& [name, saved] : index_.parameters)
    for (const auto& [kind, checksum] : saved.checksums) {
      const std::string file = npy_name(name, kind);
      const std::string path = (fs::path(path_) / file).string();
      const std::int64_t size = RegularFile(path).size();
      if (size != npy_size(saved.shape))
        throw InputError(path, fmt::format("is damaged: it has {} bytes, and was saved with {}",
                                           size, npy_size(saved.shape)));
      listed.insert(file);
    }
  std::error_code fault;
  for (fs::directory_iterator entry(path_, fault), end; !fault && entry != end;
       entry.increment(fault))
    if (!listed.contains(entry->path().filename().string()))
      throw InputError(entry->path().string(),
                       "is not a file of this checkpoint: checkpoint.json does not list it");
  if (fault) throw InputError(path_, "cannot be read: " + fault.message());
}

bool Checkpoint::has(const std::string& name, StateKind kind) const {
  const auto found = index_.parameters.find(name);
  return found != index_.parameters.end() && found->second.checksums.contains(kind);
}

std::span<const float> Checkpoint::read(const std::string& name, StateKind kind,
                                        const std::vector<std::int64_t>& shape) {
  PLAIT_CHECK(has(name, kind));
  const SavedParameter& saved = index_.parameters.at(name);
  if (saved.shape != shape)
    throw InputError(path_, fmt::format("{} has the shape [{}] there, and [{}] in this model", name,
                                        fmt::join(saved.shape, ", "), fmt::join(shape, ", ")));
  const std::string path = (fs::path(path_) / npy_name(name, kind)).string();
  const RegularFile file(path);
  const std::string head = npy_head(shape);
  if (file.size() != npy_size(shape))
    throw InputError(path, fmt::format("is damaged: it has {} bytes, and was saved with {}",
                                       file.size(), npy_size(shape)));
  bytes_ = file.text();
  if (checksum_of(bytes_) != saved.checksums.at(kind) || !bytes_.starts_with(head))
    throw InputError(path, "is damaged: its checksum is not the one in checkpoint.json");
  return {reinterpret_cast<const float*>(bytes_.data() + head.size()),
          static_cast<std::size_t>(count_of(shape))};
}

void Checkpoint::check_names(const std::vector<std::string>& names) const {
  for (const std::string& name : names)
    if (!index_.parameters.contains(name))
      throw InputError(path_, fmt::format("has no {}, which the model has: it is of another model "
                                          "({})",
                                          name, note().model));
  const std::set<std::string> known(names.begin(), names.end());
  for (const auto& [name, saved] : index_.parameters)
    if (!known.contains(name))
      throw InputError(path_, fmt::format("has {}, which the model has not: it is of another model "
                                          "({})",
                                          name, note().model));
}

}  // namespace plait::runtime
