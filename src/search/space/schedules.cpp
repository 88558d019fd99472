#include "search/space/schedules.h"

#include <algorithm>

#include "base/error.h"

namespace plait {
namespace {

// Of interleaved schedules. A limit of work: the bubble shrinks with 1 / chunks, so that from 8 on
// another doubling gains less than a sixteenth of it.
constexpr int kMostChunks = 8;

bool in_one_chunk(Schedule schedule) {
  return schedule != Schedule::interleaved && schedule != Schedule::zb_v;
}

}  // namespace

Schedule searched_schedule(const Pins& pins) {
  return pins.schedule == Schedule::gpipe ? Schedule::gpipe : Schedule::one_f_one_b;
}

std::vector<Plan> in_chunks(const Plan& pipeline, Schedule schedule, int chunks) {
  const int stages = pipeline.stage_count();
  Plan plan = pipeline;
  plan.schedule = schedule;
  std::vector<std::vector<Span>> by_position(static_cast<std::size_t>(stages) * chunks);
  for (int s = 0; s < stages; ++s) {
    PLAIT_CHECK(pipeline.stages[s].spans.size() == 1);
    const Span& whole = pipeline.stages[s].spans.front();
    const int units = whole.units.size();
    if (units < chunks) return {};
    for (int c = 0; c < chunks; ++c) {
      Span part = whole;
      part.chunk = c;
      part.units = {0, units / chunks + (c < units % chunks ? 1 : 0)};  // size only, for now
      by_position[chunk_position(schedule, stages, s, c)] = {part};
    }
  }
  int begin = 0;
  for (std::vector<Span>& chunk : by_position)
    for (Span& span : chunk) {
      span.units = {begin, begin + span.units.size()};
      begin = span.units.end;
    }
  for (int s = 0; s < stages; ++s) {
    plan.stages[s].spans.clear();
    for (int c = 0; c < chunks; ++c)
      plan.stages[s].spans.push_back(by_position[chunk_position(schedule, stages, s, c)].front());
  }
  return {plan};
}

std::vector<Plan> plans_for(const Plan& pipeline, const Pins& pins) {
  if (!pins.schedule || *pins.schedule == searched_schedule(pins)) return {pipeline};
  const Schedule schedule = *pins.schedule;
  std::vector<Plan> plans;
  if (in_one_chunk(schedule)) {
    plans.push_back(pipeline);
    plans.back().schedule = schedule;
  } else if (schedule == Schedule::zb_v) {
    plans = in_chunks(pipeline, schedule, 2);
  } else if (pipeline.stage_count() > 1 && pipeline.micro_batches % pipeline.stage_count() == 0) {
    for (int chunks = 2; chunks <= kMostChunks; ++chunks) {
      if (pins.chunks && *pins.chunks != chunks) continue;
      const std::vector<Plan> more = in_chunks(pipeline, schedule, chunks);
      plans.insert(plans.end(), more.begin(), more.end());
    }
  }
  if (pins.recompute) return plans;
  const std::size_t as_found = plans.size();
  for (std::size_t i = 0; i < as_found; ++i) {
    Plan recomputing = plans[i];
    for (Stage& stage : recomputing.stages)
      for (Span& span : stage.spans) span.recompute = Recompute::full;
    if (recomputing != plans[i]) plans.push_back(recomputing);
  }
  return plans;
}

}  // namespace plait
