#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cost/estimate.h"
#include "cost/price.h"
#include "plan/plan.h"
#include "plan/problem.h"
#include "report/table.h"
#include "search/space/search.h"

namespace plait {

// The parts of a result, each as text that ends its last line. Nothing here depends on the clock.

// Model, cluster and job in a line each.
std::string problem_heading(const Problem& problem, const Style& style,
                            std::string_view target = "");

// The best plans, a row each; with `length`, also time and price of a training.
std::string plan_table(const Problem& problem, const std::vector<RankedPlan>& plans,
                       const Style& style,
                       const std::optional<TrainingLength>& length = std::nullopt);

// One plan, a row for each stage (the first and the last of them where there are many).
std::string stage_table(const Problem& problem, const Plan& plan, const Estimate& cost,
                        const Style& style);

// What takes the memory of one plan, by kind: a row for each stage, in GiB.
std::string memory_table(const Estimate& cost, const Style& style);

// What the columns and the words of a plan mean, in a few lines.
std::string legend(const std::vector<RankedPlan>& plans, const Style& style);

// "embedding + 15 layers" for the units of a stage.
std::string units_in_words(const Model& model, const Stage& stage);
// "none"; "full 12 of 20" where only some layers of the stage are recomputed.
std::string recompute_in_words(const Model& model, const Stage& stage);

// The stage that is nearest to its memory's end, or furthest beyond it.
int tightest_stage(const Estimate& cost);

// The stage with most work for a micro-batch.
int slowest_stage(const Estimate& cost);

// What a step of the plan costs; 0 when a price is unknown.
Usd price_of_step(const Problem& problem, const Plan& plan, Seconds step);

// describe() without the devices, which the tables show by stage.
std::string short_description(const Plan& plan);

// "stage 2 needs 93.1 GiB and V100-16GB has 15.0 to give: 78.1 too much" for the tightest stage.
std::string shortage(const Problem& problem, const RankedPlan& plan);

std::string_view name_of(Source source);  // measured, interpolated, analytic

}  // namespace plait
