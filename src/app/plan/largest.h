#pragma once

#include <string>

#include "app/plan/plan.h"

namespace plait {

// What is to be as large as memory allows. A global batch is one that is computed at once: with
// `micro_batches` 1, unless the request says how many. With more of them any batch fits.
enum class LargestOf { batch, sequence };

// Find the largest global batch or sequence for which a plan fits, and the best plan for it.
struct LargestRequest : PlanRequest {
  LargestOf of = LargestOf::sequence;
};

struct LargestAnswer {
  LargestOf of = LargestOf::sequence;
  int value = 0;  // 0 = not even the smallest fits; `plan` then says why
  int next = 0;   // the next larger one that was tried; 0 = the most that can be asked for fits
  std::string next_lacks;  // "stage 2 needs ... too much"
  bool cut_short = false;  // time was up: larger ones may fit
  PlanAnswer plan;

  bool found() const { return value > 0 && plan.found(); }
};

// Sizes are multiples of 1,024 tokens (of 128 where less than 1,024 fit), or of as many samples as
// there are devices (divisors of that number where not even so many fit), for each micro-batch.
// They are tried for as long as a search may take, before the plan for the largest is searched.
LargestAnswer answer(const LargestRequest& request, const Session& session);

std::string reason(const LargestAnswer& answer);
std::string to_json(const LargestAnswer& answer);
std::string as_text(const LargestAnswer& answer, const Style& style);

}  // namespace plait
