#include "report/timeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan/describe.h"

namespace plait {
namespace {

constexpr double kMicroseconds = 1e6;

std::string arguments_of(int step, const Task& task) {
  return fmt::format(R"("step": {}, "chunk": {}, "micro_batch": {})", step, task.chunk,
                     task.micro_batch);
}

}  // namespace

Timeline::Timeline(int stage, int rank, const std::string& name) : stage_(stage), rank_(rank) {
  const auto label = [&](const char* what, const std::string& text) {
    return fmt::format(
        R"({{"name": "{}", "cat": "__metadata", "ph": "M", "ts": 0, "pid": {}, "tid": {}, "args": {{"name": "{}"}}}})",
        what, stage_ + 1, rank_, text);
  };
  text_ = label("process_name", fmt::format("stage {}", stage_ + 1)) + ",\n" +
          label("thread_name", name);
}

void Timeline::event(const std::string& name, const char* category, Seconds begin, Seconds end,
                     const std::string& arguments) {
  text_ += fmt::format(
      ",\n{{\"name\": \"{}\", \"cat\": \"{}\", \"ph\": \"X\", \"ts\": {:.3f}, \"dur\": {:.3f}, "
      "\"pid\": {}, \"tid\": {}, \"args\": {{{}}}}}",
      name, category, begin.value * kMicroseconds, (end - begin).value * kMicroseconds, stage_ + 1,
      rank_, arguments);
}

void Timeline::task(int step, const Task& task, Seconds begin, Seconds end) {
  const bool forward = task.kind == TaskKind::forward;
  const bool weights = task.kind == TaskKind::weight_gradient;
  event(fmt::format("{}{}",
                    forward   ? "F"
                    : weights ? "W"
                              : "B",
                    task.micro_batch),
        forward   ? "forward"
        : weights ? "weight gradient"
                  : "backward",
        begin, end, arguments_of(step, task));
}

void Timeline::wait(int step, const Task& task, Seconds begin, Seconds end) {
  event("wait", "idle", begin, end, arguments_of(step, task));
}

void Timeline::end_of_step(int step, const std::string& what, Seconds begin, Seconds end) {
  event(what, "end of step", begin, end, fmt::format("\"step\": {}", step));
}

std::string trace_file(const std::vector<std::string>& timelines) {
  return fmt::format("{{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n{}\n]}}\n",
                     fmt::join(timelines, ",\n"));
}

std::string predicted_trace(const Plan& plan, const Estimate& estimate, const Trace& trace) {
  std::vector<DeviceId> devices;  // in the order of ranks
  for (const Stage& stage : plan.stages)
    devices.insert(devices.end(), stage.devices.begin(), stage.devices.end());
  std::ranges::sort(devices);
  std::vector<std::string> rows;
  for (int s = 0; s < plan.stage_count(); ++s) {
    std::vector<DeviceId> ranks;
    for (const DeviceId device : plan.stages[s].devices)
      ranks.push_back(
          DeviceId(static_cast<int>(std::ranges::lower_bound(devices, device) - devices.begin())));
    std::ranges::sort(ranks);
    Timeline row(s, index(ranks.front()),
                 fmt::format("{} {}, predicted", ranks.size() == 1 ? "rank" : "ranks",
                             device_ranges(ranks)));
    for (const Event& event : trace.events)
      if (event.stage == s) row.task(0, event.task, event.begin, event.end);
    const StageCost& cost = estimate.stages[s];
    const Seconds summed = trace.stage_end[s] + cost.gradient_sync + cost.tied_sync;
    row.end_of_step(0, "gradients", trace.stage_end[s], summed);
    row.end_of_step(0, "update", summed, summed + cost.optimizer);
    rows.push_back(row.text());
  }
  return trace_file(rows);
}

}  // namespace plait
