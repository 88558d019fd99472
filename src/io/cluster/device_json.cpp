#include "io/cluster/device_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace plait {
namespace {

constexpr double kGiB = 0x1p30;

// The shortest decimal that is `value` once it is read again.
std::string shown(double value) { return fmt::format("{}", value); }

// A number x with from_unit(x) == si: the division that undoes it may be one rounding off.
template <typename FromUnit>
double preimage(double si, double guess, const FromUnit& from_unit) {
  if (from_unit(guess) == si) return guess;
  double down = guess;
  double up = guess;
  for (int step = 0; step < 4; ++step) {
    down = std::nextafter(down, 0.0);
    up = std::nextafter(up, HUGE_VAL);
    if (from_unit(down) == si) return down;
    if (from_unit(up) == si) return up;
  }
  return guess;
}

std::string in_unit(double si, double unit) {
  return shown(preimage(si, si / unit, [&](double x) { return x * unit; }));
}

// A number within what hardware can be for the next thousand years, so that no product of such
// numbers overflows, and within the range of all files (io/format/checked_number.h).
double within(const JsonValue& value, double least, double most) {
  const double number = value.number();
  if (number >= least && number <= most) return value.at_least(least);
  if (least > 0 && number <= 0) return value.positive();  // the plainer complaint
  if (least == 0 && number < 0) return value.at_least(0);
  throw InputError(value.where(), fmt::format("must be from {} to {}, is {}", least, most, number));
}

constexpr double kLeastRate = 1e-9;    // 1 byte a second, in GB/s
constexpr double kMostOfDevice = 1e9;  // of any quantity in the unit of its key

// The one table of Efficiency's fields: key in files, unit, range, place.
struct EfficiencyField {
  std::string_view key;
  double unit;
  double least;
  double most;
  double& (*at)(Efficiency&);
};

const EfficiencyField kEfficiencyFields[] = {
    {"matmul", 1, 1e-6, 1, [](Efficiency& e) -> double& { return e.matmul; }},
    {"matmul_inner", 1, 0, kMostOfDevice, [](Efficiency& e) -> double& { return e.matmul_inner; }},
    {"matmul_tail", 1, 0, kMostOfDevice, [](Efficiency& e) -> double& { return e.wave_tail; }},
    {"misaligned", 1, 0, kMostOfDevice, [](Efficiency& e) -> double& { return e.misaligned; }},
    {"fp8", 1, 1e-6, kMostOfDevice, [](Efficiency& e) -> double& { return e.fp8; }},
    {"fp4", 1, 1e-6, kMostOfDevice, [](Efficiency& e) -> double& { return e.fp4; }},
    {"batched", 1, 1e-6, 1, [](Efficiency& e) -> double& { return e.batched; }},
    {"batched_misaligned", 1, 1e-6, 1,
     [](Efficiency& e) -> double& { return e.batched_misaligned; }},
    {"attention", 1, 1e-6, 1, [](Efficiency& e) -> double& { return e.attention; }},
    {"attention_backward", 1, 1e-6, kMostOfDevice,
     [](Efficiency& e) -> double& { return e.attention_backward; }},
    {"portable_attention", 1, 1e-6, 1,
     [](Efficiency& e) -> double& { return e.portable_attention; }},
    {"early_attention", 1, 1e-6, 1, [](Efficiency& e) -> double& { return e.early_attention; }},
    {"memory", 1, 1e-6, 1, [](Efficiency& e) -> double& { return e.memory; }},
    {"optimizer", 1, 1e-6, 1, [](Efficiency& e) -> double& { return e.optimizer; }},
    {"kernel_us", 1e-6, 0, kMostOfDevice, [](Efficiency& e) -> double& { return e.kernel.value; }},
    {"intra", 1, 1e-6, 1, [](Efficiency& e) -> double& { return e.intra; }},
    {"inter", 1, 1e-6, 1, [](Efficiency& e) -> double& { return e.inter; }},
    {"spread", 1, 0, 1, [](Efficiency& e) -> double& { return e.spread; }},
};

std::string efficiency_json(Efficiency efficiency) {
  std::string out;
  for (const EfficiencyField& field : kEfficiencyFields)
    out += fmt::format("{}\"{}\": {}", out.empty() ? "" : ", ", field.key,
                       in_unit(field.at(efficiency), field.unit));
  return out;
}

void read_peaks(const JsonValue& object, DeviceType& type) {
  object.allow_only({"fp32", "tf32", "fp16", "bf16", "fp8"});
  type.peak = {};
  double best = 0;
  for (int i = 0; i < kDTypes; ++i)
    if (const auto value = object.find(kDTypeNames[i])) {
      const double peak = value->number() == 0 ? 0 : within(*value, kLeastRate, kMostOfDevice);
      type.peak[i] = FlopsPerSecond(peak * 1e12);
      best = std::max(best, type.peak[i].value);
    }
  if (best <= 0) throw InputError(object.where(), "needs a positive peak for at least one dtype");
}

}  // namespace

Link read_link(const JsonValue& object, const Link& fallback) {
  Link link = fallback;
  const auto bytes = object.find("bandwidth_GBps");
  const auto bits = object.find("bandwidth_Gbps");
  if (bytes && bits)
    throw InputError(object.where(), "give bandwidth_GBps or bandwidth_Gbps, not both");
  if (bytes) link.bandwidth = gigabytes_per_second(within(*bytes, kLeastRate, kMostOfDevice));
  if (bits) link.bandwidth = gigabytes_per_second(within(*bits, kLeastRate, kMostOfDevice) / 8);
  if (const auto latency = object.find("latency_us"))
    link.latency = Seconds(within(*latency, 0, kMostOfDevice) * 1e-6);
  return link;
}

std::string link_json(const Link& link) {
  return fmt::format("\"bandwidth_GBps\": {}, \"latency_us\": {}",
                     in_gigabytes_per_second(link.bandwidth), in_unit(link.latency.value, 1e-6));
}

BytesPerSecond gigabytes_per_second(double rate) { return BytesPerSecond(rate * 1e9); }

double in_gigabytes_per_second(BytesPerSecond rate) {
  return preimage(rate.value, rate.value / 1e9,
                  [](double x) { return gigabytes_per_second(x).value; });
}

UsdPerSecond usd_per_hour(double usd) { return UsdPerSecond(usd / kSecondsPerHour); }

double in_usd_per_hour(UsdPerSecond price) {
  return preimage(price.value, price.value * kSecondsPerHour,
                  [](double usd) { return usd_per_hour(usd).value; });
}

UsdPerSecond read_price(const JsonValue& value) {
  return usd_per_hour(within(value, 0, kMostOfDevice));
}

Efficiency read_efficiency(const JsonValue& object, const Efficiency& fallback,
                           const KnownEfficiency& known) {
  std::vector<std::string_view> keys;
  for (const EfficiencyField& field : kEfficiencyFields) keys.push_back(field.key);
  const auto like = known ? object.find("like") : std::nullopt;
  Efficiency out = like ? known(*like) : fallback;
  for (const auto& [key, value] : object.members()) {
    if (like && key == "like") continue;
    const EfficiencyField* found = nullptr;
    for (const EfficiencyField& field : kEfficiencyFields)
      if (field.key == key) found = &field;
    if (found == nullptr)
      throw InputError(object.where(),
                       fmt::format("unknown key '{}'{}", key, suggestion(key, keys)));
    found->at(out) = within(value, found->least, found->most) * found->unit;
  }
  return out;
}

DeviceType read_device_type(const JsonValue& object, const DeviceType* like,
                            const KnownEfficiency& known) {
  DeviceType type = like != nullptr ? *like : DeviceType{};
  type.name = object.at("name").text();
  if (type.name.empty()) throw InputError(object.at("name").where(), "must not be empty");
  const auto field = [&](std::string_view key) {
    return like != nullptr ? object.find(key) : std::optional(object.at(key));
  };
  // Whole bytes, so that sizes in messages are whole.
  if (const auto memory = field("memory_GiB"))
    type.memory = Bytes(std::floor(within(*memory, 1e-6, kMostOfDevice) * kGiB));
  if (const auto bandwidth = field("memory_bandwidth_GBps"))
    type.memory_bandwidth = gigabytes_per_second(within(*bandwidth, kLeastRate, kMostOfDevice));
  if (const auto peak = field("peak_TFLOPs")) read_peaks(*peak, type);
  if (const auto link = field("link")) {
    link->allow_only({"kind", "bandwidth_GBps", "bandwidth_Gbps", "latency_us", "switched"});
    type.switched = link->boolean_or("switched", type.switched);
    if (like == nullptr && !link->find("bandwidth_Gbps")) link->at("bandwidth_GBps");
    type.intra = read_link(*link, like != nullptr ? like->intra : Link{{}, Seconds(5e-6)});
  }
  type.per_node = object.integer_or("per_node", 1, 1'000'000, type.per_node);
  type.multiprocessors = object.integer_or("multiprocessors", 1, 100'000, type.multiprocessors);
  if (const auto efficiency = object.find("efficiency"))
    type.efficiency = read_efficiency(*efficiency, type.efficiency, known);
  if (const auto price = object.find("price_usd_per_hour")) type.price = read_price(*price);
  if (const auto host = object.find("host")) {
    host->allow_only({"link_GBps", "memory_GBps"});
    if (const auto link = host->find("link_GBps"))
      type.host_link = gigabytes_per_second(within(*link, kLeastRate, kMostOfDevice));
    if (const auto memory = host->find("memory_GBps"))
      type.host_memory = gigabytes_per_second(within(*memory, kLeastRate, kMostOfDevice));
  }
  type.collectives = object.text_or("collectives", type.collectives);
  type.basis = object.text_or("basis", like != nullptr ? "copied from " + like->name : "");
  return type;
}

std::string device_type_json(const DeviceType& type) {
  std::string peaks;
  for (int i = 0; i < kDTypes; ++i)
    if (type.peak[i].value > 0)
      peaks += fmt::format("{}\"{}\": {}", peaks.empty() ? "" : ", ", kDTypeNames[i],
                           in_unit(type.peak[i].value, 1e12));
  return fmt::format(
      "{{\"name\": {}, \"memory_GiB\": {}, \"memory_bandwidth_GBps\": {}, \"peak_TFLOPs\": {{{}}}, "
      "\"link\": {{{}, \"switched\": {}}}, \"per_node\": {}, \"multiprocessors\": {}, "
      "\"efficiency\": {{{}}}, "
      "\"price_usd_per_hour\": {}, \"host\": {{\"link_GBps\": {}, \"memory_GBps\": {}}}, "
      "{}\"basis\": {}}}",
      nlohmann::json(type.name).dump(), in_unit(type.memory.value, kGiB),
      in_gigabytes_per_second(type.memory_bandwidth), peaks, link_json(type.intra), type.switched,
      type.per_node, type.multiprocessors, efficiency_json(type.efficiency),
      shown(in_usd_per_hour(type.price)), in_gigabytes_per_second(type.host_link),
      in_gigabytes_per_second(type.host_memory),
      type.collectives == DeviceType().collectives
          ? ""
          : fmt::format("\"collectives\": {}, ", nlohmann::json(type.collectives).dump()),
      nlohmann::json(type.basis).dump());
}

std::vector<JsonValue> named_entries(const JsonValue& list) {
  constexpr std::size_t kMost = 1000;
  std::vector<JsonValue> entries = list.items();
  if (entries.size() > kMost)
    throw InputError(list.where(),
                     fmt::format("has {} entries, at most {} are read", entries.size(), kMost));
  return entries;
}

}  // namespace plait
