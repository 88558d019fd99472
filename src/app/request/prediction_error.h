#pragma once

#include <string>
#include <vector>

#include "plan/problem.h"
#include "search/space/search.h"
#include "validation/error_band.h"

namespace plait {

// How far off the prediction of a plan may be (validation/error_band.h), in words and as JSON.

// "Half of the runs of this kind take 20.1 s to 24.9 s, nine in ten 17.3 s to 29.5 s."
std::string step_band_in_words(const Problem& problem, const RankedPlan& plan);

// Where the memory that is predicted to be left is less than predictions of it are off: how likely
// that is; "" elsewhere.
std::string memory_doubt_in_words(const Problem& problem, const RankedPlan& plan);

// "Plans 2 to 4 are up to 1.3 % slower, which is within the error: ..."; "" where there is one
// plan.
std::string ranking_in_words(const std::vector<RankedPlan>& plans);

// How likely `later`, which is predicted to be slower, is slower than `best`.
double order_after(const RankedPlan& best, const RankedPlan& later);

// {"typical", "step_half_s": [low, high], "step_nine_tenths_s", "memory_half_GiB",
// "memory_nine_tenths_GiB", "memory_one_in_ten_GiB": what one in ten exceeds, "because"}
std::string prediction_error_json(const Problem& problem, const RankedPlan& plan);

}  // namespace plait
