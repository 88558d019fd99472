#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/keywords.h"
#include "python/listening.h"
#include "python/saved_plan.h"
#include "report/table.h"

namespace plait {

// An answer of `app` on its way to Python: its JSON and its text, made when they are asked for, and
// the plans in it.
struct Answered {
  std::function<std::string()> json;
  std::function<std::string(const Style&)> text;
  std::function<std::string()> picture{};  // an SVG; empty = there is none
  std::vector<SavedPlan> plans{};          // best first
  std::optional<SavedPlan> nearest{};      // where nothing fits
  // Name and text of what was written for another program.
  std::vector<std::pair<std::string, std::string>> files{};
  std::string reason{};  // why there is no plan; "" = there is one
  bool interrupted = false;
  double seconds = 0;  // that `app` took to answer
};

// What every answer has. Texts name keywords; `answer` is kept as long as anybody may ask.
template <typename Answer>
Answered answered(const std::shared_ptr<const Answer>& answer) {
  return {.json = [answer] { return in_keywords(to_json(*answer)); },
          .text = [answer](const Style& style) { return in_keywords(as_text(*answer, style)); }};
}

// A plan of an answer, which shares its problem.
template <typename Answer>
SavedPlan plan_of(const std::shared_ptr<const Answer>& answer, const Problem& problem,
                  const RankedPlan& ranked) {
  return {std::shared_ptr<const Problem>(answer, &problem), ranked.plan, program_version(),
          ranked.cost};
}

// The functions of the module, in files by what they are about.
void add_plan_calls(nanobind::module_& module);
void add_saved_calls(nanobind::module_& module);
void add_known_calls(nanobind::module_& module);

}  // namespace plait
