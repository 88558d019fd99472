#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"
#include "io/profile/optional_fields.h"
#include "model/fingerprint.h"
#include "runtime/profiler/profile.h"

namespace plait::runtime {
namespace {

struct MeasurementWriter : FieldWriter {
  using FieldWriter::operator();
  void operator()(std::string_view key, const std::optional<Timing>& timing) const {
    if (!timing) return;
    object.json(key, json_list({json_number(timing->median.value), json_number(timing->spread),
                                json_number(timing->repeats)}));
  }
};

struct MeasurementReader : FieldReader {
  using FieldReader::operator();
  void operator()(std::string_view key, std::optional<Timing>& into) const {
    const auto value = json.find(key);
    if (!value) return;
    const std::vector<JsonValue> parts = value->items();
    if (parts.size() != 3) throw InputError(value->where(), "must have three numbers");
    into = Timing{Seconds(parts[0].at_least(0)), parts[1].at_least(0),
                  parts[2].integer(0, 1'000'000'000)};
  }
};

// `Result` is a Measurement, const or not.
template <typename Result>
void visit_fields(Result& result, const auto& visit) {
  auto& [forward, backward, weight_gradient, optimizer, forward_launch, backward_launch, saved,
         input, workspace, reserved, out_of_memory, flags] = result;
  visit("forward", forward);
  visit("backward", backward);
  visit("weight_gradient", weight_gradient);
  visit("optimizer", optimizer);
  visit("forward_launch", forward_launch);
  visit("backward_launch", backward_launch);
  visit("saved_B", saved);
  visit("input_B", input);
  visit("workspace_B", workspace);
  visit("reserved_B", reserved);
  visit("out_of_memory", out_of_memory);
  visit("flags", flags);
}

std::string line_of(const std::string& fingerprint, const std::string& text,
                    const Measurement& result) {
  JsonObject object;
  object.text("point", fingerprint).text("what", text);
  visit_fields(result, MeasurementWriter{{object}});
  return object.str() + "\n";
}

Measurement measurement_of(const JsonValue& json) {
  Measurement result;
  visit_fields(result, MeasurementReader{{json}});
  return result;
}

}  // namespace

PointCache::PointCache(const std::string& path, bool reads) : path_(path) {
  std::error_code fault;
  const bool missing =
      std::filesystem::status(path_, fault).type() == std::filesystem::file_type::not_found;
  if (path_.empty() || !reads || missing) return;
  const std::string text = read_text_file(path_);
  std::size_t at = 0;
  int number = 0;
  while (at < text.size()) {
    const std::size_t end = text.find('\n', at);
    ++number;
    // What a killed run left half-written has no end, or ends where the next run went on.
    if (end == text.npos) break;
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    try {
      const JsonValue json = parse_json(fmt::format("{}:{}", path_, number), line);
      known_[json.at("point").text()] = measurement_of(json);
    } catch (const InputError&) {
      if (number == 1 && at >= text.size())
        throw InputError(path_, "is not a file of measured points; choose another `cache`");
    }
  }
}

const Measurement* PointCache::find(const std::string& fingerprint) const {
  const auto it = known_.find(fingerprint);
  return it == known_.end() ? nullptr : &it->second;
}

void PointCache::append(const std::string& fingerprint, const std::string& text,
                        const Measurement& result) {
  known_[fingerprint] = result;
  if (path_.empty()) return;
  const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) throw InputError(path_, std::string("cannot be written: ") + std::strerror(errno));
  std::string line = line_of(fingerprint, text, result);
  char last = '\n';
  const off_t size = lseek(file, 0, SEEK_END);
  if (size > 0 && pread(file, &last, 1, size - 1) == 1 && last != '\n') line = "\n" + line;
  const ssize_t written = write(file, line.data(), line.size());
  const int fault = errno;
  close(file);
  if (written != static_cast<ssize_t>(line.size()))
    throw InputError(path_, std::string("cannot be written: ") + std::strerror(fault));
}

std::string usual_cache() {
  namespace fs = std::filesystem;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  fs::path folder;
  if (cache != nullptr && *cache != '\0')
    folder = cache;
  else if (home != nullptr && *home != '\0')
    folder = fs::path(home) / ".cache";
  else
    return "";
  folder /= "plait";
  std::error_code fault;
  fs::create_directories(folder, fault);
  return fault ? "" : (folder / "points.jsonl").string();
}

std::string fingerprint_of(const ProfilePoint& point, const Machine& machine, int round) {
  // Counts up when the way to measure changes so much that old results are not comparable.
  constexpr int kMethod = 4;
  return hashed(fmt::format("{}|{}|{}|{}", point.text, machine.text(), kMethod, round));
}

std::string Machine::text() const {
  std::string out = device_type;
  for (const auto& [name, version] : versions) out += fmt::format("; {} {}", name, version);
  return out;
}

}  // namespace plait::runtime
