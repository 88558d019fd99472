#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "cluster/cluster_builder.h"
#include "plan/describe.h"
#include "plan/fold.h"
#include "plan/names.h"

namespace plait {
namespace {

constexpr int kMaxStages = 100'000;
constexpr int kMaxChunks = 1000;  // of a stage
constexpr int kMaxUnits = 10'000'000;
constexpr std::size_t kMaxText = std::size_t{16} << 20;  // of all stages together, written out

std::vector<std::string_view> split_at(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    if (end == text.size()) return parts;
    begin = end + 1;
  }
}

// The "+" and "/" of a stage's text, in order: two texts with the same joints have the same shape.
std::string joints(std::string_view stage) {
  std::string found;
  for (const char c : stage)
    if (c == '+' || c == '/') found += c;
  return found;
}

class Parser {
 public:
  Parser(const std::string& where, std::string_view text) : where_(where), text_(text) {}

  Plan run() {
    if (text_.size() > kMaxText) fail("is too long to describe a plan");
    read_words();
    plan_.micro_batches = whole("m", 1);
    plan_.context = whole("cp", 1);
    plan_.expert = whole("ep", 1);
    plan_.zero = static_cast<ZeroStage>(whole("zero", 0, 0, 3));
    plan_.offload = offload();
    stages_ = whole("pp", std::nullopt, 1, kMaxStages);
    plan_.stages.resize(stages_);
    read_layers();
    read_spans("tp", [&](Span& span, std::string_view t) { span.tensor = number("tp", t, 1); });
    read_spans("dp", [&](Span& span, std::string_view t) { span.data = number("dp", t, 1); });
    read_spans("split",
               [&](Span& span, std::string_view t) { span.split = number("split", t, 0); });
    read_spans("recompute", [&](Span& span, std::string_view t) {
      const auto value = recompute_named(t);
      if (!value) fail(fmt::format("unknown recompute '{}'", t));
      span.recompute = *value;
    });
    read_shares();
    read_devices();
    return std::move(plan_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw InputError(where_, what); }

  void read_words() {
    bool has_schedule = false;
    for (const std::string_view word : split_at(text_, " \t\n")) {
      if (word.empty()) continue;
      if (const auto schedule = schedule_named(word)) {
        if (has_schedule) fail(fmt::format("a second schedule, '{}'", word));
        plan_.schedule = *schedule;
        has_schedule = true;
        continue;
      }
      const std::size_t equals = word.find('=');
      const std::size_t digit = word.find_first_of("0123456789([");
      const std::size_t name_end = std::min({equals, digit, word.size()});
      const std::string_view name = word.substr(0, name_end);
      // "tp2" and "layers=12": each name has one of the two forms.
      static constexpr std::string_view short_names[] = {"pp", "tp", "dp",   "cp",
                                                         "ep", "m",  "zero", "sp"};
      static constexpr std::string_view long_names[] = {"offload", "recompute", "split",
                                                        "layers",  "shares",    "devices"};
      const bool is_long = equals == name_end;
      const bool known =
          is_long ? std::ranges::count(long_names, name) > 0
                  : std::ranges::count(short_names, name) > 0 && (name == "sp") == (word == "sp");
      if (!known) fail(fmt::format("'{}' is not a word of a plan's description", shown(word)));
      const std::string_view said = word.substr(name_end + (is_long ? 1 : 0));
      if (!words_.emplace(name, written_out(name, said)).second)
        fail(fmt::format("'{}' is there twice", name));
    }
    plan_.sequence_parallel = words_.count("sp") > 0;
  }

  // "(none+full)*2" as "none+full+none+full", and "[2/1]*2" as "2/1,2/1".
  std::string_view written_out(std::string_view name, std::string_view said) {
    if (said.find_first_of("*([") == said.npos) return said;
    std::optional<std::string> text = unfolded_stages(said, kMaxText);
    if (text) text = unfolded(*text, kMaxText);
    if (!text) fail(fmt::format("'{}' of '{}' does not fold out", shown(said), name));
    return unfolded_.emplace_back(std::move(*text));
  }

  static std::string_view shown(std::string_view word) { return word.substr(0, 40); }

  std::string_view value(std::string_view name) const {
    const auto it = words_.find(name);
    if (it == words_.end()) fail(fmt::format("'{}' is missing", name));
    return it->second;
  }

  int number(std::string_view name, std::string_view text, int least,
             int most = kMaxDevices) const {
    int result = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
    if (error != std::errc() || end != text.data() + text.size() || result < least || result > most)
      fail(fmt::format("'{}' of '{}' must be a whole number from {} to {}", shown(text), name,
                       least, most));
    return result;
  }

  int whole(std::string_view name, std::optional<int> fallback, int least = 1,
            int most = 1'000'000'000) const {
    if (fallback && words_.count(name) == 0) return *fallback;
    return number(name, value(name), least, most);
  }

  double offload() const {
    if (words_.count("offload") == 0) return 0;
    const std::string_view text = value("offload");
    double result = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
    if (error != std::errc() || end != text.data() + text.size() || !(result >= 0 && result <= 1))
      fail(fmt::format("'{}' of 'offload' must be a number from 0 to 1", shown(text)));
    return result;
  }

  // What the word says for each stage.
  std::vector<std::string_view> by_stage(std::string_view name) const {
    std::vector<std::string_view> parts = split_at(value(name), ",");
    if (parts.size() == 1 && stages_ > 1) {
      if (parts[0].size() * stages_ > kMaxText) fail(fmt::format("'{}' is too long", name));
      parts.assign(stages_, parts[0]);
    }
    if (static_cast<int>(parts.size()) != stages_)
      fail(fmt::format("'{}' has {} entries for {} stages", name, parts.size(), stages_));
    return parts;
  }

  // Sizes first, then positions in the order in which the schedule runs the chunks.
  void read_layers() {
    struct Chunk {
      int position;
      int stage;
      int begin;  // its spans, half-open
      int end;
    };
    std::vector<Chunk> chunks;
    const std::vector<std::string_view> texts = by_stage("layers");
    for (int s = 0; s < stages_; ++s) {
      const std::vector<std::string_view> chunk_texts = split_at(texts[s], "/");
      if (chunk_texts.size() > kMaxChunks) fail(fmt::format("more than {} chunks", kMaxChunks));
      std::vector<Span>& spans = plan_.stages[s].spans;
      for (int c = 0; c < static_cast<int>(chunk_texts.size()); ++c) {
        const int begin = static_cast<int>(spans.size());
        for (const std::string_view size : split_at(chunk_texts[c], "+")) {
          Span span;
          span.units.end = number("layers", size, 1, kMaxUnits);
          span.chunk = c;
          spans.push_back(span);
        }
        chunks.push_back({chunk_position(plan_.schedule, stages_, s, c), s, begin,
                          static_cast<int>(spans.size())});
      }
      shape_.push_back(joints(texts[s]));
    }
    std::ranges::stable_sort(chunks, {}, &Chunk::position);
    int unit = 0;
    for (const Chunk& chunk : chunks) {
      for (int i = chunk.begin; i < chunk.end; ++i) {
        Span& span = plan_.stages[chunk.stage].spans[i];
        const int size = span.units.end;
        if (size > kMaxUnits - unit) fail(fmt::format("more than {} layers", kMaxUnits));
        span.units = {unit, unit + size};
        unit += size;
      }
    }
  }

  template <typename Read>
  void read_spans(std::string_view name, const Read& read) {
    if (words_.count(name) == 0) return;
    const std::vector<std::string_view> texts = by_stage(name);
    for (int s = 0; s < stages_; ++s) {
      std::vector<Span>& spans = plan_.stages[s].spans;
      std::vector<std::string_view> parts = split_at(texts[s], "+/");
      if (parts.size() == 1)
        parts.assign(spans.size(), parts[0]);
      else if (joints(texts[s]) != shape_[s])
        fail(fmt::format("'{}' does not have the spans of 'layers' in stage {}", name, s));
      for (std::size_t i = 0; i < spans.size(); ++i) read(spans[i], parts[i]);
    }
  }

  void read_shares() {
    if (words_.count("shares") == 0) return;
    const std::vector<std::string_view> texts = by_stage("shares");
    for (int s = 0; s < stages_; ++s) {
      if (texts[s] == "equal") continue;
      std::vector<int>& shares = plan_.stages[s].shares;
      for (const std::string_view run : split_at(texts[s], ":")) {
        const std::size_t times = run.find('x');
        const int share = number("shares", run.substr(0, times), 1);
        const int count = times == run.npos ? 1 : number("shares", run.substr(times + 1), 2);
        if (shares.size() + count > kMaxDevices) fail("more shares than devices");
        shares.insert(shares.end(), count, share);
      }
    }
  }

  std::vector<DeviceId> read_ranges(std::string_view text) {
    std::vector<DeviceId> devices;
    for (const std::string_view run : split_at(text, ",")) {
      const std::size_t dash = run.find('-');
      const int first = number("devices", run.substr(0, dash), 0, kMaxDevices - 1);
      const int last = dash == run.npos
                           ? first
                           : number("devices", run.substr(dash + 1), first, kMaxDevices - 1);
      device_count_ += last - first + 1;
      if (device_count_ > kMaxDevices) fail(fmt::format("more than {} devices", kMaxDevices));
      for (int id = first; id <= last; ++id) devices.push_back(DeviceId{id});
    }
    return devices;
  }

  void read_devices() {
    const std::vector<std::string_view> texts = split_at(value("devices"), "|");
    if (static_cast<int>(texts.size()) == stages_) {
      for (int s = 0; s < stages_; ++s) plan_.stages[s].devices = read_ranges(texts[s]);
      return;
    }
    if (texts.size() != 1)
      fail(fmt::format("'devices' has {} parts for {} stages", texts.size(), stages_));
    const std::vector<DeviceId> all = read_ranges(texts[0]);
    double needed = 0;
    for (const Stage& stage : plan_.stages) needed += needed_by(stage);
    if (needed != static_cast<double>(all.size()))
      fail(fmt::format("'devices' are {}, the stages need {}", all.size(), needed));
    auto next = all.begin();
    for (Stage& stage : plan_.stages) {
      const auto end = next + static_cast<std::ptrdiff_t>(needed_by(stage));
      stage.devices.assign(next, end);
      next = end;
    }
  }

  double needed_by(const Stage& stage) const {
    return 1.0 * stage.spans[0].tensor * stage.spans[0].data * plan_.context;
  }

  const std::string& where_;
  std::string_view text_;
  std::map<std::string_view, std::string_view> words_;  // name to value
  std::deque<std::string> unfolded_;                    // what some of them point to
  int stages_ = 0;
  std::vector<std::string> shape_;  // joints of `layers`, by stage
  int device_count_ = 0;
  Plan plan_;
};

}  // namespace

Plan parse_description(const std::string& where, std::string_view text) {
  return Parser(where, text).run();
}

}  // namespace plait
