#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "io/format/json_reader.h"

namespace plait {

// The parts that catalogue files and cluster files share. Units are in the keys: GB = 1e9 B,
// GiB = 2^30 B, Gbps = 1e9 bit/s. Values come back bit for bit: what `*_json` writes, `read_*`
// reads as the same double.

inline constexpr std::string_view kDTypeNames[kDTypes] = {"fp32", "tf32", "fp16", "bf16", "fp8"};

// {"bandwidth_GBps": 25, "latency_us": 5} or {"bandwidth_Gbps": 200, ...}; what is absent is taken
// from `fallback`. The caller checks for unknown keys.
Link read_link(const JsonValue& object, const Link& fallback);
std::string link_json(const Link& link);  // the members, without braces

// Rates from and to the unit of files. in_*(x) is a number whose *(..) is x again, for every x that
// was once read.
BytesPerSecond gigabytes_per_second(double rate);
double in_gigabytes_per_second(BytesPerSecond rate);
UsdPerSecond usd_per_hour(double usd);
double in_usd_per_hour(UsdPerSecond price);
UsdPerSecond read_price(const JsonValue& value);  // USD per hour, from 0

// {"matmul": 0.7, "matmul_inner": 150, "attention": .., "memory": .., "kernel_us": .., "intra":
// ..}; what is absent is taken from `fallback`, or, where `known` is given, from the device that
// "like" names.
using KnownEfficiency = std::function<const Efficiency&(const JsonValue& name)>;
Efficiency read_efficiency(const JsonValue& object, const Efficiency& fallback,
                           const KnownEfficiency& known = {});

// Reads the hardware of a device type: memory_GiB, memory_bandwidth_GBps, peak_TFLOPs, link,
// per_node, efficiency, price_usd_per_hour. Without `like` memory, bandwidth, peak and link must be
// there; with it, they are taken from it when absent. The caller checks for unknown keys.
DeviceType read_device_type(const JsonValue& object, const DeviceType* like,
                            const KnownEfficiency& known = {});
std::string device_type_json(const DeviceType& type);  // an object on one line

// The entries of a list whose names must differ; a thousand at most, for each is compared with all.
std::vector<JsonValue> named_entries(const JsonValue& list);

}  // namespace plait
