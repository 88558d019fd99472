#include "runtime/trial/run_log.h"

#include <fmt/format.h>
#include <regex.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "base/error.h"

namespace plait::runtime {
namespace {

constexpr std::size_t kLongestMatched = 2000;
constexpr std::size_t kLongestReason = 300;

struct Unit {
  std::string_view name;
  double scale;
};
constexpr std::array kTimeUnits{Unit{"s", 1},     Unit{"sec", 1},     Unit{"seconds", 1},
                                Unit{"ms", 1e-3}, Unit{"msec", 1e-3}, Unit{"milliseconds", 1e-3},
                                Unit{"us", 1e-6}, Unit{"min", 60}};
constexpr std::array kMemoryUnits{Unit{"GiB", 0x1p30}, Unit{"B", 1},     Unit{"KB", 1e3},
                                  Unit{"KiB", 0x1p10}, Unit{"MB", 1e6},  Unit{"MiB", 0x1p20},
                                  Unit{"GB", 1e9},     Unit{"TB", 1e12}, Unit{"TiB", 0x1p40},
                                  Unit{"G", 0x1p30},   Unit{"M", 0x1p20}};

// A line of the known programs that tells the time of a step: the numbers behind `keys`, added.
// PyTorch's "MB" and "GB" of memory, which all of them print, are 2^20 and 2^30 bytes.
struct TimeLine {
  std::string_view mark;  // stands in the line
  std::array<std::string_view, 3> keys;
  double scale;  // 0: samples per second
};
constexpr std::array kTimeLines{
    TimeLine{"step ", {"| time", "", ""}, 1},
    TimeLine{
        "elapsed time per iteration (ms):", {"elapsed time per iteration (ms):", "", ""}, 1e-3},
    TimeLine{"elapsed time per iteration (s):", {"elapsed time per iteration (s):", "", ""}, 1},
    TimeLine{"iter time (s):", {"iter time (s):", "", ""}, 1},
    TimeLine{"CurrSamplesPerSec=", {"CurrSamplesPerSec=", "", ""}, 0},
    TimeLine{"time (ms) | fwd:", {"| fwd:", "| bwd:", "| step:"}, 1e-3},
    TimeLine{"train_step_timing in s:", {"train_step_timing in s:", "", ""}, 1},
};

struct MemoryLine {
  std::string_view mark;
  std::string_view key;
  double scale;
};
constexpr std::array kMemoryLines{
    MemoryLine{"step ", "| memory", 0x1p30},
    MemoryLine{"memory (MB)", "max allocated:", 0x1p20},
    MemoryLine{"MaxMemAllocated=", "MaxMemAllocated=", 0x1p30},
    MemoryLine{"Max_MA ", "Max_MA", 0x1p30},
};

constexpr std::array<std::string_view, 14> kOutOfMemory{
    "CUDA out of memory",
    "OutOfMemoryError",
    "CUDA error: out of memory",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "cudaErrorMemoryAllocation",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "Cuda failure 'out of memory'",  // NCCL
    "Cuda failure 2 'out of memory'",
    "HIP out of memory",
    "RESOURCE_EXHAUSTED: Out of memory",  // XLA
    "can't allocate memory",              // PyTorch on the CPU
    "not enough memory: you tried to allocate",
    "std::bad_alloc",
};

// POSIX's matcher, and not the standard library's, whose time grows exponentially with some
// patterns and whose stack grows with the line.
class Pattern {
 public:
  Pattern(const std::string& flag, const std::string& text) {
    const int fault = regcomp(&expression_, with_digits(text).c_str(), REG_EXTENDED);
    if (fault != 0) {
      std::array<char, 200> words{};
      regerror(fault, &expression_, words.data(), words.size());
      throw InputError(flag, fmt::format("is not a regular expression: {}", words.data()));
    }
    if (groups() >= 1 && groups() <= 2) return;
    regfree(&expression_);
    throw InputError(flag,
                     "needs one group around the number, such as 'step took ([0-9.]+)', and "
                     "may have a second around its unit");
  }
  ~Pattern() { regfree(&expression_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  std::size_t groups() const { return expression_.re_nsub; }

  // The texts of the groups; empty where nothing matches.
  std::vector<std::string> match(std::string_view line) const {
    const std::string text(line.substr(0, kLongestMatched));
    std::array<regmatch_t, 3> found{};
    if (regexec(&expression_, text.c_str(), found.size(), found.data(), 0) != 0) return {};
    std::vector<std::string> out;
    for (std::size_t i = 1; i <= groups(); ++i)
      out.push_back(found[i].rm_so < 0
                        ? std::string()
                        : text.substr(static_cast<std::size_t>(found[i].rm_so),
                                      static_cast<std::size_t>(found[i].rm_eo - found[i].rm_so)));
    return out;
  }

 private:
  // \d is everybody's habit but not POSIX's.
  static std::string with_digits(std::string text) {
    for (std::size_t at = 0; (at = text.find("\\d", at)) != std::string::npos;)
      text.replace(at, 2, "[0-9]");
    return text;
  }

  regex_t expression_{};
};

std::function<std::optional<double>(std::string_view)> matcher(const std::string& flag,
                                                               const std::string& pattern,
                                                               std::span<const Unit> units) {
  if (pattern.empty()) return {};
  const auto expression = std::make_shared<Pattern>(flag, pattern);
  return [expression, units](std::string_view line) -> std::optional<double> {
    const std::vector<std::string> groups = expression->match(line);
    if (groups.empty()) return std::nullopt;
    const auto value = number_after(groups[0], "");
    if (!value) return std::nullopt;
    if (groups.size() < 2 || groups[1].empty()) return *value * units[0].scale;
    for (const Unit& unit : units)
      if (unit.name == groups[1]) return *value * unit.scale;
    return std::nullopt;
  };
}

// Not what is left of a binary file, nor a line of blanks.
bool is_text(std::string_view line) {
  const auto control = [](unsigned char c) { return c < ' ' && c != '\t'; };
  return line.find_first_not_of(" \t\r") != line.npos &&
         std::none_of(line.begin(), line.end() - (line.back() == '\r' ? 1 : 0), control);
}

}  // namespace

std::optional<double> number_after(std::string_view line, std::string_view key) {
  const std::size_t found = line.find(key);
  if (found == std::string_view::npos) return std::nullopt;
  line.remove_prefix(found + key.size());
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  double value = 0;
  const auto read = std::from_chars(line.data(), line.data() + line.size(), value);
  if (read.ec != std::errc() || !std::isfinite(value)) return std::nullopt;
  return value;
}

RunLog::RunLog(const LogPatterns& patterns, int global_batch)
    : own_time_(matcher("`time_pattern`", patterns.time, kTimeUnits)),
      own_memory_(matcher("`memory_pattern`", patterns.memory, kMemoryUnits)),
      global_batch_(global_batch) {}

void RunLog::read(std::string_view line) {
  const std::size_t steps = steps_.size();
  read_time(line);
  read_memory(line);
  const auto has = [line](std::string_view words) { return line.find(words) != line.npos; };
  if (out_of_memory_.empty() && std::any_of(kOutOfMemory.begin(), kOutOfMemory.end(), has))
    out_of_memory_ = line;
  if (has("Error") || has("error:") || has("plait: ")) last_error_ = line;
  if (steps == steps_.size() && is_text(line)) last_text_ = line.substr(0, kLongestReason);
}

void RunLog::read_time(std::string_view line) {
  if (own_time_) {
    if (const auto value = own_time_(line); value && *value > 0) steps_.emplace_back(*value);
    return;
  }
  for (std::size_t i = 0; i < kTimeLines.size(); ++i) {
    const TimeLine& known = kTimeLines[i];
    if ((form_ >= 0 && form_ != static_cast<int>(i)) || line.find(known.mark) == line.npos)
      continue;
    double sum = 0;
    bool all = true;
    for (const std::string_view key : known.keys)
      if (!key.empty()) {
        const auto value = number_after(line, key);
        all = all && value;
        sum += value.value_or(0);
      }
    if (!all || sum <= 0) continue;
    form_ = static_cast<int>(i);
    const double step = known.scale == 0 ? global_batch_ / sum : known.scale * sum;
    if (std::isfinite(step)) steps_.emplace_back(step);
    return;
  }
}

void RunLog::read_memory(std::string_view line) {
  std::optional<double> value;
  if (own_memory_) {
    value = own_memory_(line);
  } else {
    for (const MemoryLine& known : kMemoryLines)
      if (!value && line.find(known.mark) != line.npos)
        if (const auto number = number_after(line, known.key)) value = *number * known.scale;
  }
  if (value && *value > 0) memory_ = std::max(memory_.value_or(Bytes()), Bytes(*value));
}

std::optional<Seconds> RunLog::median_step(int warm_up, int most) const {
  if (steps_.size() <= static_cast<std::size_t>(warm_up)) return std::nullopt;
  const auto end = std::min(steps_.size(), static_cast<std::size_t>(warm_up) + most);
  std::vector<Seconds> counted(steps_.begin() + warm_up,
                               steps_.begin() + static_cast<std::ptrdiff_t>(end));
  std::sort(counted.begin(), counted.end());
  const std::size_t middle = counted.size() / 2;
  return counted.size() % 2 == 1 ? counted[middle] : (counted[middle - 1] + counted[middle]) / 2;
}

}  // namespace plait::runtime
