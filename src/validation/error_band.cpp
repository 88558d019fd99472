#include "validation/error_band.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "io/format/embedded.h"

namespace plait {
namespace {

ErrorScale read_scale(const JsonValue& object) {
  object.allow_only({"half", "nine_tenths", "above", "sources", "rows", "factors"});
  ErrorScale scale{.half = object.at("half").positive(),
                   .nine_tenths = object.at("nine_tenths").positive(),
                   .above = object.at("above").positive(),
                   .factors = {}};
  for (const JsonValue& item : object.at("factors").items()) {
    item.allow_only({"property", "factor", "sources", "rows"});
    scale.factors.push_back({.property = item.at("property").text(),
                             .factor = item.at("factor").positive(),
                             .sources = item.integer_or("sources", 0, kMaxInt, 0)});
  }
  return scale;
}

std::vector<std::string> read_names(const JsonValue& list) {
  std::vector<std::string> out;
  for (const JsonValue& name : list.items()) out.push_back(name.text());
  return out;
}

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// Whether the run has the property, and the words for it; nothing where the word is not known.
struct Held {
  bool held = false;
  std::string words;
};

Held held(const ErrorTable& table, const RunKind& kind, const std::string& property) {
  // A profile tells how fast a new device is.
  if (property == "new_device")
    return {!kind.measured && !is_among(table.devices, kind.device),
            "a device of which no runs are known"};
  if (property == "new_framework")
    return {!is_among(table.frameworks, kind.framework), "a program of which no runs are known"};
  const auto found = std::ranges::find(kRunProperties, property, &RunProperty::name);
  PLAIT_CHECK(found != kRunProperties.end());
  return {kind.*found->value, std::string(found->words)};
}

ErrorBand band_of(const ErrorTable& table, const ErrorScale& scale, const RunKind& kind) {
  double factor = 1;
  ErrorBand band;
  for (const ErrorFactor& entry : scale.factors) {
    const Held property = held(table, kind, entry.property);
    if (!property.held) continue;
    factor *= entry.factor;
    if (entry.factor > 1) band.because.push_back(property.words);
  }
  band.high = std::exp(factor * scale.half);
  band.low = 1 / band.high;
  band.highest = std::exp(factor * scale.nine_tenths);
  band.lowest = 1 / band.highest;
  band.above = std::exp(factor * scale.above);
  return band;
}

}  // namespace

ErrorTable read_error_table(const JsonValue& document) {
  document.allow_only({"plait_errors", "from", "time", "memory", "order", "devices", "frameworks"});
  ErrorTable table{.time = read_scale(document.at("time")),
                   .memory = read_scale(document.at("memory")),
                   .order = {},
                   .devices = read_names(document.at("devices")),
                   .frameworks = read_names(document.at("frameworks"))};
  for (const JsonValue& item : document.at("order").items())
    table.order.push_back({.apart = item.at("apart").positive(),
                           .right = item.at("right").positive(),
                           .pairs = item.integer_or("pairs", 0, kMaxInt, 0)});
  return table;
}

const ErrorTable& builtin_error_table() {
  static const ErrorTable table =
      read_error_table(parse_json("errors.json", embedded_file("errors.json")));
  return table;
}

ErrorBand time_band(const ErrorTable& table, const RunKind& kind) {
  return band_of(table, table.time, kind);
}

ErrorBand memory_band(const ErrorTable& table, const RunKind& kind) {
  return band_of(table, table.memory, kind);
}

double chance_of_order(const ErrorTable& table, double ratio) {
  const double apart = std::abs(std::log(ratio));
  OrderPoint before;  // predicted equal: either may be faster
  for (const OrderPoint& point : table.order) {
    if (apart <= point.apart)
      return before.right +
             (point.right - before.right) * (apart - before.apart) / (point.apart - before.apart);
    before = point;
  }
  return before.right;
}

}  // namespace plait
