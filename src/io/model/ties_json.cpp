#include "io/model/ties_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "io/format/json_writer.h"

namespace plait {
namespace {

constexpr std::int64_t kMostTies = 5'000'000;

struct Run {
  Tie tie;  // the first
  int times = 1;
};

std::vector<Tie> unfolded(const std::vector<Run>& runs) {
  std::vector<Tie> ties;
  bool repeats = false;
  for (const Run& run : runs) {
    repeats = repeats || run.times > 1;
    for (int i = 0; i < run.times; ++i) {
      ties.push_back(run.tie);
      ties.back().first += i;
      ties.back().second += i;
    }
  }
  if (repeats) std::ranges::stable_sort(ties, {}, &Tie::second);
  return ties;
}

std::vector<Run> folded(const std::vector<Tie>& ties) {
  std::vector<Run> runs;
  std::map<std::tuple<int, int, int, double>, std::size_t> last;  // run of such ties
  for (const Tie& tie : ties) {
    const auto [at, is_new] = last.try_emplace(
        {tie.second - tie.first, tie.first_op, tie.second_op, tie.parameters}, runs.size());
    if (!is_new && runs[at->second].tie.second + runs[at->second].times == tie.second) {
      ++runs[at->second].times;
      continue;
    }
    at->second = runs.size();
    runs.push_back({tie});
  }
  if (unfolded(runs) == ties) return runs;
  // In another order than that of their units: one by one.
  runs.clear();
  for (const Tie& tie : ties) runs.push_back({tie});
  return runs;
}

Run restore_run(const JsonValue& json, const Model& model, std::int64_t most) {
  json.allow_only({"first", "second", "parameters", "first_op", "second_op", "times"});
  const int last = model.unit_count() - 1;
  Run run;
  run.tie.first = json.at("first").integer(0, last);
  run.tie.second = json.at("second").integer(0, last);
  run.tie.parameters = json.at("parameters").at_least(0);
  run.times = json.integer_or("times", 1, last + 1 - std::max(run.tie.first, run.tie.second), 1);
  if (run.times > most)
    throw InputError(json.where(), fmt::format("makes more than {} ties", kMostTies));
  const auto last_op = [&](int unit) {
    std::size_t ops = model.unit(unit).ops.size();
    for (int i = 1; i < run.times; ++i) ops = std::min(ops, model.unit(unit + i).ops.size());
    return static_cast<int>(ops) - 1;
  };
  run.tie.first_op = json.integer_or("first_op", 0, last_op(run.tie.first), 0);
  run.tie.second_op = json.integer_or("second_op", 0, last_op(run.tie.second), 0);
  return run;
}

}  // namespace

std::string dump_ties(const std::vector<Tie>& ties) {
  std::vector<std::string> parts;
  for (const Run& run : folded(ties)) {
    const auto& [first, second, parameters, first_op, second_op] = run.tie;
    JsonObject json;
    json.number("first", first).number("second", second).number("parameters", parameters);
    json.number("first_op", first_op).number("second_op", second_op);
    if (run.times > 1) json.number("times", run.times);
    parts.push_back(json.str());
  }
  return json_list(parts);
}

std::vector<Tie> restore_ties(const JsonValue& list, const Model& model) {
  std::vector<Run> runs;
  std::int64_t count = 0;
  for (const JsonValue& item : list.items()) {
    runs.push_back(restore_run(item, model, kMostTies - count));
    count += runs.back().times;
  }
  return unfolded(runs);
}

}  // namespace plait
