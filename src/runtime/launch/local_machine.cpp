#include "runtime/launch/local_machine.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/launch/child_process.h"

namespace plait::runtime {
namespace {

namespace fs = std::filesystem;

// The files of /proc and /sys have no size that could be asked for.
std::string small_file(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<double> first_number(std::string_view text) {
  const std::size_t begin = text.find_first_of("0123456789");
  double value = 0;
  if (begin == text.npos ||
      std::from_chars(text.data() + begin, text.data() + text.size(), value).ec != std::errc())
    return std::nullopt;
  return value;
}

int nvidia_devices() {
  std::error_code fault;
  int count = 0;
  for (fs::directory_iterator entry("/proc/driver/nvidia/gpus", fault), end; !fault && entry != end;
       entry.increment(fault))
    ++count;
  return count;
}

}  // namespace

std::optional<Bytes> available_memory(std::string_view meminfo) {
  constexpr std::string_view kKey = "MemAvailable:";
  const std::size_t at = meminfo.find(kKey);
  if (at == meminfo.npos) return std::nullopt;
  const std::string_view line = meminfo.substr(at, meminfo.find('\n', at) - at);
  const auto kibibytes = first_number(line);
  if (!kibibytes) return std::nullopt;
  return Bytes(*kibibytes * 1024);
}

std::optional<Bytes> group_memory(std::string_view max, std::string_view current) {
  const auto limit = first_number(max);
  const auto used = first_number(current);
  if (!limit || !used) return std::nullopt;
  return Bytes(std::max(0.0, *limit - *used));
}

std::vector<Bytes> gpu_memories(std::string_view listing) {
  std::vector<Bytes> out;
  while (!listing.empty()) {
    const std::size_t end = std::min(listing.find('\n'), listing.size());
    if (const auto mebibytes = first_number(listing.substr(0, end)))
      out.emplace_back(*mebibytes * 0x1p20);
    listing.remove_prefix(std::min(end + 1, listing.size()));
  }
  return out;
}

int visible_gpus(int count, const std::optional<std::string>& variable) {
  if (!variable) return count;
  int seen = 0;
  std::string_view rest = *variable;
  while (!rest.empty() && seen < count) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string_view name = rest.substr(0, end);
    int number = 0;
    const bool is_number =
        std::from_chars(name.data(), name.data() + name.size(), number).ec == std::errc();
    if (name.empty() || (is_number && (number < 0 || number >= count))) break;
    ++seen;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return seen;
}

LocalMachine local_machine(const Variables& variables) {
  LocalMachine out;
  out.free_memory = available_memory(small_file("/proc/meminfo"));
  const auto group = group_memory(small_file("/sys/fs/cgroup/memory.max"),
                                  small_file("/sys/fs/cgroup/memory.current"));
  if (group && (!out.free_memory || *group < *out.free_memory)) out.free_memory = group;
  const int devices = nvidia_devices();
  const int visible = visible_gpus(devices, variables("CUDA_VISIBLE_DEVICES"));
  if (visible == 0) return out;
  out.gpus = gpu_memories(
      run_to_end({"nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"}).out);
  // Which of several GPUs are visible does not matter where they are alike; else nothing is known.
  const bool alike =
      std::adjacent_find(out.gpus.begin(), out.gpus.end(), std::not_equal_to<>()) == out.gpus.end();
  if (!alike && visible < devices) out.gpus.assign(out.gpus.size(), Bytes(0));
  out.gpus.resize(static_cast<std::size_t>(visible), Bytes(0));
  return out;
}

}  // namespace plait::runtime
