#include "plan/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan/fold.h"
#include "plan/names.h"

namespace plait {
namespace {

// Joins what each stage says; once is enough when all say the same.
std::string by_stage(const std::vector<std::string>& stages) {
  const auto same = [&](const std::string& text) { return text == stages.front(); };
  if (stages.empty()) return "";
  return std::ranges::all_of(stages, same) ? stages.front() : folded_stages(stages);
}

// What the spans of each stage say, joined by "+" and folded, and, between chunks, by "/". With
// `merge`, a stage whose spans all say the same says it once.
template <typename Text>
std::string by_span(const Plan& plan, bool merge, const Text& text) {
  std::vector<std::string> stages;
  for (const Stage& stage : plan.stages) {
    std::string joined;
    std::vector<std::string> chunk;
    bool same = true;
    for (std::size_t i = 0; i < stage.spans.size(); ++i) {
      chunk.push_back(text(stage.spans[i]));
      same = same && chunk.back() == text(stage.spans[0]);
      const bool last = i + 1 == stage.spans.size();
      if (!last && stage.spans[i + 1].chunk == stage.spans[i].chunk) continue;
      joined += folded(chunk) + (last ? "" : "/");
      chunk.clear();
    }
    stages.push_back(merge && same && !stage.spans.empty() ? text(stage.spans[0]) : joined);
  }
  return by_stage(stages);
}

std::string describe_devices(const Plan& plan) {
  std::vector<DeviceId> all;
  std::vector<std::string> stages;
  for (const Stage& stage : plan.stages) {
    all.insert(all.end(), stage.devices.begin(), stage.devices.end());
    stages.push_back(device_ranges(stage.devices));
  }
  const std::string together = device_ranges(all);
  return together.find(',') == together.npos ? together : fmt::format("{}", fmt::join(stages, "|"));
}

std::string describe_shares(const Plan& plan) {
  std::vector<std::string> stages;
  for (const Stage& stage : plan.stages)
    stages.push_back(stage.shares.empty() ? "equal" : share_runs(stage.shares));
  return by_stage(stages);
}

}  // namespace

std::string share_runs(const std::vector<int>& shares) {
  std::vector<std::string> runs;
  for (std::size_t first = 0; first < shares.size();) {
    std::size_t end = first;
    while (end < shares.size() && shares[end] == shares[first]) ++end;
    runs.push_back(end - first == 1 ? fmt::format("{}", shares[first])
                                    : fmt::format("{}x{}", shares[first], end - first));
    first = end;
  }
  return fmt::format("{}", fmt::join(runs, ":"));
}

std::string device_ranges(const std::vector<DeviceId>& devices) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < devices.size();) {
    std::size_t end = i + 1;
    while (end < devices.size() && index(devices[end]) == index(devices[end - 1]) + 1) ++end;
    runs.push_back(end - i == 1 ? fmt::format("{}", index(devices[i]))
                                : fmt::format("{}-{}", index(devices[i]), index(devices[end - 1])));
    i = end;
  }
  return fmt::format("{}", fmt::join(runs, ","));
}

std::string describe(const Plan& plan) {
  const auto number = [](int Span::*field) {
    return [field](const Span& span) { return fmt::format("{}", span.*field); };
  };
  const auto recompute = [](const Span& span) { return std::string(name_of(span.recompute)); };
  const auto units = [](const Span& span) { return fmt::format("{}", span.units.size()); };

  std::string line =
      fmt::format("pp{} tp{} dp{}", plan.stage_count(), by_span(plan, true, number(&Span::tensor)),
                  by_span(plan, true, number(&Span::data)));
  const auto add = [&](std::string_view word, const std::string& value) {
    line += fmt::format(" {}{}", word, value);
  };
  if (plan.context != 1) add("cp", std::to_string(plan.context));
  if (plan.expert != 1) add("ep", std::to_string(plan.expert));
  add("m", std::to_string(plan.micro_batches));
  add("", std::string(name_of(plan.schedule)));
  if (plan.zero != ZeroStage::off) add("zero", std::string(name_of(plan.zero)));
  if (plan.sequence_parallel) add("sp", "");
  if (plan.offload != 0) add("offload=", fmt::format("{}", plan.offload));
  if (const std::string all = by_span(plan, true, recompute); all != "none") add("recompute=", all);
  if (const std::string all = by_span(plan, true, number(&Span::split)); all != "0")
    add("split=", all);
  add("layers=", by_span(plan, false, units));
  if (const std::string all = describe_shares(plan); all != "equal") add("shares=", all);
  add("devices=", describe_devices(plan));
  return line;
}

}  // namespace plait
