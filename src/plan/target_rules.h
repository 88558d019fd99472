#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/names.h"
#include "plan/plan.h"
#include "plan/problem.h"
#include "plan/target.h"

// Every rule of what programs run is a function of a `Question`, and stands nowhere else.
// why_not.cpp has the list of them.
namespace plait::target_rules {

// Why the program cannot run the plan, as a sentence; nothing if this rule allows it.
using Reason = std::optional<std::string>;

struct Question {
  const Target& target;
  const Problem& problem;
  const Plan& plan;
};

// memory_rules.cpp
Reason zero_reason(const Question& q);
Reason recompute_reason(const Question& q);
Reason offload_reason(const Question& q);

bool contains(const auto& list, const auto& value) {
  return std::ranges::find(list, value) != list.end();
}

// "a, b and c"
std::string listed(std::vector<std::string_view> names);

template <typename T>
std::string names_of(const std::vector<T>& values) {
  std::vector<std::string_view> names;
  for (const T value : values) names.push_back(name_of(value));
  return listed(std::move(names));
}

}  // namespace plait::target_rules
