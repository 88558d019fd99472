#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "base/error.h"
#include "io/cluster/catalogue.h"
#include "io/format/checked_number.h"
#include "io/format/json_reader.h"
#include "io/format/unit_factors.h"
#include "io/profile/import_profile.h"

namespace plait {
namespace {

struct Program {
  std::string_view name;
  const char* collective;
};
constexpr std::array kPrograms{Program{"all_reduce", "all_reduce"},
                               Program{"all_gather", "all_gather"},
                               Program{"reduce_scatter", "reduce_scatter"},
                               Program{"alltoall", "all_to_all"}, Program{"sendrecv", "send"}};

const char* collective_in(std::string_view text) {
  for (const Program& program : kPrograms)
    if (text.find(fmt::format("{}_perf", program.name)) != text.npos) return program.collective;
  return nullptr;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// Nothing for what is not a number; a log has other words, too.
std::optional<double> number(const std::string& path, const std::string& text) {
  double value = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault == std::errc::invalid_argument || stop != text.data() + text.size())
    return std::nullopt;
  const auto inside = checked_number(text);
  if (!inside)
    throw InputError(path, fmt::format("has the number {}, outside of 0 and {} to {}",
                                       text.substr(0, 40), kSmallestQuantity, kLargestQuantity));
  return inside;
}

// What one program printed.
struct Output {
  const char* collective = nullptr;
  std::set<std::string> hosts;
  int ranks = 0;
  std::string device;
  std::size_t time_column = 0;
  std::map<double, double> points;  // seconds by bytes
};

// "#  Rank  0 Group  0 Pid  1234 on  node1 device  0 [0x07] NVIDIA A100-SXM4-40GB"
void read_rank(const std::string& line, Output& output) {
  const std::vector<std::string> words = words_of(line);
  const auto on = std::ranges::find(words, "on");
  if (on == words.end() || on + 1 == words.end()) return;
  ++output.ranks;
  output.hosts.insert(*(on + 1));
  if (const std::size_t at = line.find("] "); at != line.npos) {
    output.device = line.substr(at + 2);
    output.device.erase(output.device.find_last_not_of(" \r") + 1);
  }
}

void read_line(const std::string& path, const std::string& line, Output& output) {
  if (line.starts_with("#")) {
    if (const char* named = collective_in(line); named != nullptr) output.collective = named;
    if (line.find(" Rank ") != line.npos) read_rank(line, output);
    const std::vector<std::string> words = words_of(line.substr(1));
    const auto time = std::ranges::find(words, "time");
    if (!words.empty() && words[0] == "size" && time != words.end())
      output.time_column = static_cast<std::size_t>(time - words.begin());
    return;
  }
  const std::vector<std::string> words = words_of(line);
  if (output.time_column == 0 || words.size() <= output.time_column) return;
  const auto size = number(path, words[0]);
  const auto time = number(path, words[output.time_column]);
  if (size && time && *size > 0 && *time > 0) output.points[*size] = *time * kMicrosecond;
}

bool recognises_nccl_tests(const ProfilePath& files) {
  return std::ranges::any_of(files.names,
                             [](const auto& name) { return collective_in(name) != nullptr; });
}

// A log may hold what several programs printed, one after the other. Each begins with the line of
// its parameters; newer ones name themselves in the line before it.
std::vector<Output> outputs_in(const std::string& path, const std::string& name) {
  std::vector<Output> outputs;
  std::istringstream text(read_text_file(path));
  for (std::string line; std::getline(text, line);) {
    const bool named = line.starts_with("# Collective test starting");
    const bool begins = named || line.starts_with("# nThread");
    if (outputs.empty() || (begins && (outputs.back().ranks > 0 || outputs.back().time_column > 0)))
      outputs.push_back(
          {.collective = collective_in(name), .hosts = {}, .device = {}, .points = {}});
    read_line(path, line, outputs.back());
  }
  std::erase_if(outputs, [](const Output& output) { return output.time_column == 0; });
  return outputs;
}

void add_curve(const std::string& path, const Output& output, Profile& profile) {
  if (output.collective == nullptr)
    throw InputError(path,
                     "does not say which collective it measures: name it like all_reduce_perf.txt");
  if (output.ranks < 2 || output.points.empty())
    throw InputError(path, "has no table of times, or not the list of two or more ranks");
  const int nodes = static_cast<int>(output.hosts.size());
  if (output.ranks % nodes != 0)
    throw InputError(
        path, fmt::format("has {} ranks on {} nodes: not as many on each", output.ranks, nodes));
  const DeviceEntry* known = lookup_device(builtin_catalogue(), output.device);
  const bool send = std::string_view(output.collective) == "send";
  const CollectiveKey key{.collective = output.collective,
                          .device_type = known != nullptr ? known->type.name : output.device,
                          .nodes = nodes,
                          .devices_per_node = send ? 1 : output.ranks / nodes};
  std::vector<CollectivePoint> points;
  for (const auto& [size, time] : output.points)
    points.push_back({.size = Bytes(size), .time = Seconds(time)});
  profile.collectives[key] = std::move(points);
}

LoadedProfile read_nccl_tests(const ProfilePath& files, const Model&) {
  LoadedProfile loaded;
  for (const std::string& name : files.names)
    for (const Output& output : outputs_in(files.path(name), name))
      add_curve(files.path(name), output, loaded.profile);
  if (loaded.profile.collectives.empty())
    throw InputError(files.names.size() == 1 ? files.path(files.names[0]) : files.directory,
                     "has no output of nccl-tests");
  return loaded;
}

}  // namespace

const Importer kNcclTestsImporter{"nccl-tests", "what nccl-tests print: all_reduce_perf.txt",
                                  recognises_nccl_tests, read_nccl_tests, false};

}  // namespace plait
