#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/price.h"
#include "io/format/json_writer.h"
#include "plan/problem.h"
#include "search/space/search.h"

namespace plait {

// The parts of answers as JSON, each in one place.

// A plan of a result: describe, step_s, tokens_per_s, mfu, mfu_full_attention, peak_memory_GiB,
// error (app/request/prediction_error.h), usd_per_step (null when unknown), training (with
// `length`), plan, stages.
std::string ranked_plan_json(const Problem& problem, const RankedPlan& ranked,
                             const std::optional<TrainingLength>& length = std::nullopt);
// The same members, to be added to.
JsonObject ranked_plan_object(const Problem& problem, const RankedPlan& ranked,
                              const std::optional<TrainingLength>& length = std::nullopt);

// A stage with every named second and byte of its cost.
std::string stage_json(const Problem& problem, const Plan& plan, int index, const StageCost& cost);

// {"steps", "goodput", "time_s", "usd"}; usd is null when a price is unknown.
std::string training_json(const Training& training);

std::string sentences_json(const std::vector<std::string>& sentences);
std::string number_or_null(const std::optional<double>& value);

}  // namespace plait
