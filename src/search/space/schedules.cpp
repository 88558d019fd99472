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

// A chunk of so many units, of each span its part of them, rounded towards the first ones, which
// are recomputed most. Sizes only; units follow.
std::vector<Span> part_of(const std::vector<Span>& spans, int chunk, int size, int chunks) {
  std::vector<Span> part;
  int left = size;
  for (const Span& span : spans) {
    PLAIT_CHECK(span.tensor == spans.front().tensor && span.data == spans.front().data);
    const bool last = &span == &spans.back();
    const int own = last ? left : std::min(left, (span.units.size() + chunks - 1) / chunks);
    if (own == 0) continue;
    part.push_back(span);
    part.back().chunk = chunk;
    part.back().units = {0, own};
    left -= own;
  }
  return part;
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
    const std::vector<Span>& spans = pipeline.stages[s].spans;
    const int units = spans.back().units.end - spans.front().units.begin;
    if (units < chunks) return {};
    for (int c = 0; c < chunks; ++c)
      by_position[chunk_position(schedule, stages, s, c)] =
          part_of(spans, c, units / chunks + (c < units % chunks ? 1 : 0), chunks);
  }
  int begin = 0;
  for (std::vector<Span>& chunk : by_position)
    for (Span& span : chunk) {
      span.units = {begin, begin + span.units.size()};
      begin = span.units.end;
    }
  for (int s = 0; s < stages; ++s) {
    plan.stages[s].spans.clear();
    for (int c = 0; c < chunks; ++c) {
      const std::vector<Span>& chunk = by_position[chunk_position(schedule, stages, s, c)];
      plan.stages[s].spans.insert(plan.stages[s].spans.end(), chunk.begin(), chunk.end());
    }
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
  if (pins.recompute || pins.recompute_layers) return plans;
  const std::size_t as_found = plans.size();
  for (std::size_t i = 0; i < as_found; ++i) {
    Plan recomputing = plans[i];
    for (Stage& stage : recomputing.stages)
      for (Span& span : stage.spans) span.recompute = Recompute::full;
    for (Stage& stage : recomputing.stages) join_alike(stage);
    if (recomputing != plans[i]) plans.push_back(recomputing);
  }
  return plans;
}

}  // namespace plait
