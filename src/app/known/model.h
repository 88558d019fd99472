#pragma once

#include <optional>
#include <string>

#include "io/model/loaded_model.h"
#include "report/table.h"

namespace plait {

// Describe one model: parameters, layers, work of a sample.
struct ModelRequest {
  std::string model;  // as ProblemSource::model
  std::optional<int> sequence;
};

LoadedModel answer(const ModelRequest& request);
std::string to_json(const LoadedModel& answer);
std::string as_text(const LoadedModel& answer, const Style& style);

}  // namespace plait
