#include "search/uniform/moved_layers.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "search/uniform/division/chunk_descent.h"
#include "search/uniform/division/chunk_layers.h"

namespace plait {
namespace {

// With the usual work.
constexpr double kMostMoves = 200;  // simulations
constexpr double kFarFrom = 1.1;
constexpr double kMostMoveTasks = 600'000;  // of all of them

// The plan with its layers elsewhere; nothing where the program does not run that.
std::optional<Plan> recut_like(const SearchContext& context, const Plan& like,
                               const std::vector<int>& begins) {
  const Model& model = context.problem.model;
  const Plan plan = recut(like, like.schedule, begins, model.unit_count());
  const std::vector<int> layers = layers_in_order(model, plan);
  const auto [least, most] = std::ranges::minmax(layers);
  if (context.options.pins.even_layers && most > least + 1) return std::nullopt;
  if (why_not(context.options.target, context.problem, plan)) return std::nullopt;
  return plan;
}

}  // namespace

void move_layers(const SearchContext& context, const Plan& plan, double work, Seconds wanted,
                 Shortlist& better) {
  better.offer(plan);
  if (better.best() > kFarFrom * wanted) return;
  const double tasks =
      2.0 * plan.micro_batches * plan.stage_count() * chunk_count(plan.stages.front());
  const ChunkDescent descent{
      *context.engine,
      [&](const std::vector<int>& begins) { return recut_like(context, plan, begins); },
      static_cast<int>(work * std::min(kMostMoves, kMostMoveTasks / tasks))};
  descend(descent, layers_in_order(context.problem.model, plan), better);
}

}  // namespace plait
