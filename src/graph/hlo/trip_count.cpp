#include "graph/hlo/trip_count.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace plait::graph {
namespace {

std::optional<double> known_trip_count(const Instruction& loop) {
  const std::string* text = loop.attribute("backend_config");
  if (text == nullptr) return std::nullopt;
  const std::size_t at = text->find("known_trip_count");
  if (at == std::string::npos) return std::nullopt;
  const std::size_t digit = text->find_first_of("0123456789", at);
  if (digit == std::string::npos) return std::nullopt;
  return std::strtod(text->c_str() + digit, nullptr);
}

class Counter {
 public:
  Counter(const Program& program, const std::function<int(int)>& resolved)
      : program_(program), resolved_(resolved) {}

  const Node& maker(int value) const {
    // Copies and conversions of a counter count as well.
    for (;;) {
      value = resolved_(value);
      const Node& node = program_.nodes[program_.values[value].node];
      const bool same = node.is("convert") || node.is("copy") || node.is("bitcast");
      if (!same || node.operands.size() != 1) return node;
      value = node.operands.front();
    }
  }

  std::optional<double> constant(int value) const {
    const Node& node = maker(value);
    if (!node.is("constant") || !node.source->shape.dims.empty()) return std::nullopt;
    char* end = nullptr;
    const double number = std::strtod(node.source->literal.c_str(), &end);
    if (end == node.source->literal.c_str() || !std::isfinite(number)) return std::nullopt;
    return number;
  }

  // By how much the body moves the carried value.
  std::optional<double> step(const Node& enter) const {
    if (enter.operands.size() < 2) return std::nullopt;
    const Node& next = maker(enter.operands[1]);
    if (next.operands.size() != 2) return std::nullopt;
    const bool minus = next.is("subtract");
    if (!minus && !next.is("add")) return std::nullopt;
    for (int side = 0; side < 2; ++side) {
      if (&maker(next.operands[side]) != &enter) continue;
      const std::optional<double> by = constant(next.operands[1 - side]);
      if (!by || (minus && side == 1)) return std::nullopt;
      return minus ? -*by : *by;
    }
    return std::nullopt;
  }

 private:
  const Program& program_;
  const std::function<int(int)>& resolved_;
};

// Trips of a counter from `first` by `step` while it is `direction` than `limit`.
std::optional<double> trips_of(const std::string& direction, double first, double step,
                               double limit) {
  const double distance = limit - first;
  if (step == 0) return std::nullopt;
  if (direction == "LT" && step > 0) return std::max(0.0, std::ceil(distance / step));
  if (direction == "LE" && step > 0) return std::max(0.0, std::floor(distance / step) + 1);
  if (direction == "GT" && step < 0) return std::max(0.0, std::ceil(distance / step));
  if (direction == "GE" && step < 0) return std::max(0.0, std::floor(distance / step) + 1);
  if (direction == "NE" && distance / step >= 0 && std::fmod(distance, step) == 0)
    return distance / step;
  return std::nullopt;
}

std::string mirrored(const std::string& direction) {
  if (direction == "LT") return "GT";
  if (direction == "LE") return "GE";
  if (direction == "GT") return "LT";
  return direction == "GE" ? "LE" : direction;
}

}  // namespace

std::optional<double> trip_count(const Program& program, const Instruction& loop, int condition,
                                 const std::function<int(int)>& resolved) {
  if (const std::optional<double> known = known_trip_count(loop)) return known;
  if (condition < 0) return std::nullopt;
  const Counter counter(program, resolved);
  const Node& compare = counter.maker(condition);
  if (!compare.is("compare") || compare.operands.size() != 2) return std::nullopt;
  const std::string* text = compare.source->attribute("direction");
  if (text == nullptr) return std::nullopt;
  for (int side = 0; side < 2; ++side) {
    const Node& enter = counter.maker(compare.operands[side]);
    const std::optional<double> limit = counter.constant(compare.operands[1 - side]);
    if (enter.kind != NodeKind::loop_enter || enter.source != &loop || !limit) continue;
    const std::optional<double> first = counter.constant(enter.operands.front());
    const std::optional<double> step = counter.step(enter);
    if (!first || !step) continue;
    return trips_of(side == 0 ? *text : mirrored(*text), *first, *step, *limit);
  }
  return std::nullopt;
}

}  // namespace plait::graph
