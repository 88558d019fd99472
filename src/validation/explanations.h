#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validation/validation.h"

namespace plait {

// Which part of predicted steps would have to change for the predictions to be right.

// The parts that are varied, by name.
struct StepTerm {
  std::string_view name;
  Seconds StepTerms::*value;
};
inline constexpr std::array kStepTerms{
    StepTerm{"compute", &StepTerms::compute},
    StepTerm{"host", &StepTerms::host},
    StepTerm{"tensor", &StepTerms::communication},
    StepTerm{"pipeline", &StepTerms::pipeline},
    StepTerm{"data", &StepTerms::data},
    StepTerm{"optimizer", &StepTerms::optimizer},
};

// One factor on one term for all rows of a source.
struct ErrorExplanation {
  std::string source;
  int rows = 0;
  std::string_view term;
  double factor = 1;
  double before = 0;  // mean size of the errors
  double after = 0;   // with the factor that the other rows give
};

// For each source with at least three timed rows: the term whose one factor, found on the other
// rows, leaves the least error in each row; nothing where none lowers it by a tenth or more.
std::vector<ErrorExplanation> explanations(const std::vector<MeasuredRun>& runs,
                                           const std::vector<RunPrediction>& predictions);

}  // namespace plait
