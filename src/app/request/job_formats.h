#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/request/search_request.h"

namespace plait {

// Sets number format and attention: what was asked for, or else what every device has.
// `precision`: what a launch script asks for.
void choose_formats(const ProblemSource& source, std::optional<Precision> precision,
                    LoadedProblem& loaded);

// One sentence for each device type that cannot compute in the job's precision.
std::vector<std::string> precision_warnings(const Cluster& cluster, const Job& job,
                                            const Target& target);

// RequestError when no device can do what the job asks for, or the program has no way to.
void refuse_formats(const LoadedProblem& loaded);

// What whoever runs a plan should know of the program that was asked for.
std::vector<std::string> program_remarks(const ProblemSource& source);

}  // namespace plait
