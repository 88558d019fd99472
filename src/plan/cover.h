#pragma once
// The rule of check.h that concerns the spans of all stages together.

#include <string>
#include <vector>

#include "plan/check.h"

namespace plait {

// "stages[1].spans[0].units"
std::string span_place(int stage, int span, const char* field);

// Every unit is in one span; then, if so and where the chunks of every stage are sound, chunks
// follow each other in the order in which the schedule runs them. Says nothing of spans whose units
// are not of the model.
void report_cover(const Problem& problem, const Plan& plan, bool chunks_are_sound,
                  std::vector<Violation>& found);

}  // namespace plait
