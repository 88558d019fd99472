#include "report/plan_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "cost/engine.h"
#include "cost/price.h"
#include "plan/describe.h"
#include "plan/fold.h"
#include "plan/names.h"
#include "report/quantities.h"
#include "report/summary.h"

namespace plait {
namespace {

constexpr int kMostStages = 16;  // rows of a table; plait estimate shows all

std::string by_span(const Stage& stage, const auto& text) {
  std::vector<std::string> parts;
  for (const Span& span : stage.spans)
    if (const std::string part = text(span); parts.empty() || parts.back() != part)
      parts.push_back(part);
  return folded(parts);
}

std::string memory_of(const StageCost& stage) {
  return fmt::format("{} / {}", in_gibibytes(stage.peak_memory()), in_gibibytes(stage.capacity));
}

std::vector<std::string> stage_row(const Problem& problem, const Plan& plan, const Estimate& cost,
                                   int index) {
  const Stage& stage = plan.stages[index];
  const StageCost& time = cost.stages[index];
  return {std::to_string(index + 1),
          types_of(problem.cluster, stage.devices),
          device_ranges(stage.devices),
          by_span(stage, [](const Span& span) { return std::to_string(span.tensor); }),
          by_span(stage, [](const Span& span) { return std::to_string(span.data); }),
          stage.shares.empty() ? "" : share_runs(stage.shares),
          recompute_in_words(problem.model, stage),
          in_words(time.forward_total()),
          in_words(time.backward_total()),
          memory_of(time),
          units_in_words(problem.model, stage)};
}

}  // namespace

std::string problem_heading(const Problem& problem, const Style& style, std::string_view target) {
  std::string model = paragraph(summary_of(problem.model), style);
  model.pop_back();
  return style.bold(model) + "\n" + paragraph("on " + summary_of(problem.cluster), style) +
         paragraph(summary_of(problem, target), style) + paragraph(how_sure(problem), style);
}

std::string short_description(const Plan& plan) {
  const std::string line = describe(plan);
  return line.substr(0, line.rfind(" devices="));
}

Usd price_of_step(const Problem& problem, const Plan& plan, Seconds step) {
  return price_of(problem.cluster, plan) * step;
}

int tightest_stage(const Estimate& cost) {
  const auto tightest = std::ranges::min_element(
      cost.stages, {}, [](const StageCost& stage) { return stage.spare() / stage.capacity; });
  return static_cast<int>(tightest - cost.stages.begin());
}

std::string shortage(const Problem& problem, const RankedPlan& plan) {
  const int index = tightest_stage(plan.cost);
  const StageCost& stage = plan.cost.stages[index];
  return fmt::format("stage {} needs {} and {} has {} to give: {} too much", index + 1,
                     in_words(stage.peak_memory()),
                     types_of(problem.cluster, {plan.plan.stages[index].devices.front()}).substr(2),
                     in_words(stage.capacity - stage.reserve), in_words(Bytes(0) - stage.spare()));
}

std::string_view name_of(Source source) {
  switch (source) {
    case Source::measured:
      return "measured";
    case Source::interpolated:
      return "interpolated";
    case Source::analytic:
      return "analytic";
  }
  return "analytic";
}

int slowest_stage(const Estimate& cost) {
  const auto slowest = std::ranges::max_element(cost.stages, {}, [](const StageCost& stage) {
    return stage.forward_total() + stage.backward_total();
  });
  return static_cast<int>(slowest - cost.stages.begin());
}

std::string plan_table(const Problem& problem, const std::vector<RankedPlan>& plans,
                       const Style& style, const std::optional<TrainingLength>& length) {
  Table table({{"#"},
               {"step"},
               {problem.model.sequence_length > 1 ? "tokens/s" : "samples/s", Align::right, 2},
               {"MFU", Align::right, 3},
               {"bubble", Align::right, 5},
               {"GiB used", Align::right, 1},
               {"$/step", Align::right, 4},
               {"training"},
               {"price"},
               {"plan", Align::left}});
  int rank = 0;
  for (const auto& [plan, cost] : plans) {
    const Usd price = price_of_step(problem, plan, cost.step);
    const Training all =
        training_of(length.value_or(TrainingLength{}), cost.step, price_of(problem.cluster, plan));
    table.row({std::to_string(++rank), in_words(cost.step),
               grouped(tokens_per_second(problem, cost.step)),
               percent(model_flops_utilisation(problem, plan, cost.step)),
               percent(cost.bubble / cost.step), memory_of(cost.stages[tightest_stage(cost)]),
               price > Usd(0) ? in_words(price) : "", length ? long_time(all.time) : "",
               all.price > Usd(0) ? in_words(all.price) : "", short_description(plan)});
  }
  return table.str(style);
}

std::string units_in_words(const Model& model, const Stage& stage) {
  const bool in_ops = !std::ranges::all_of(model.kinds, &LayerKind::starts_layer);
  std::vector<std::pair<std::string, int>> runs;  // a word, and how many of it follow each other
  for (const Span& span : stage.spans)
    for (int u = span.units.begin; u < span.units.end; ++u) {
      const std::string word = in_ops                    ? "op"
                               : is_layer(model.unit(u)) ? "layer"
                                                         : model.unit(u).name;
      if (runs.empty() || runs.back().first != word) runs.emplace_back(word, 0);
      ++runs.back().second;
    }
  std::vector<std::string> parts;
  for (const auto& [word, count] : runs)
    parts.push_back(word == "op" || word == "layer" ? counted(count, word) : word);
  return fmt::format("{}", fmt::join(parts, " + "));
}

std::string recompute_in_words(const Model& model, const Stage& stage) {
  std::array<int, 3> layers{};
  int all = 0;
  bool in_ops = false;
  for (const Span& span : stage.spans)
    for (int u = span.units.begin; u < span.units.end; ++u) {
      in_ops = in_ops || (is_layer(model.unit(u)) && !begins_layer(model.unit(u)));
      if (!begins_layer(model.unit(u))) continue;
      ++layers[static_cast<std::size_t>(span.recompute)];
      ++all;
    }
  const auto name = [](const Span& span) { return std::string(name_of(span.recompute)); };
  const std::string kinds = by_span(stage, name);
  if (in_ops || kinds == name(stage.spans.front())) return kinds;
  std::vector<std::string> parts;
  for (const Recompute kind : {Recompute::full, Recompute::selective})
    if (const int own = layers[static_cast<std::size_t>(kind)]; own == all)
      return std::string(name_of(kind));
    else if (own > 0)
      parts.push_back(fmt::format("{} {}", name_of(kind), own));
  return parts.empty() ? "none" : fmt::format("{} of {}", fmt::join(parts, ", "), all);
}

std::string stage_table(const Problem& problem, const Plan& plan, const Estimate& cost,
                        const Style& style) {
  Table table({{"stage"},
               {"devices", Align::left},
               {"ids", Align::left, 5},
               {"tp"},
               {"dp"},
               {"shares", Align::right, 1},
               {"recompute", Align::left, 4},
               {"forward", Align::right, 2},
               {"backward", Align::right, 3},
               {"GiB used"},
               {"what", Align::left}});
  const int stages = plan.stage_count();
  for (int s = 0; s < stages; ++s) {
    if (stages > kMostStages && s == kMostStages / 2) {
      s = stages - kMostStages / 2;
      table.row({"...", "", "", "", "", "", "", "", "", "", ""});
    }
    table.row(stage_row(problem, plan, cost, s));
  }
  return table.str(style);
}

std::string memory_table(const Estimate& cost, const Style& style) {
  Table table({{"stage"},
               {"weights"},
               {"gradients"},
               {"optimizer"},
               {"activations", Align::right, 1},
               {"workspace", Align::right, 5},
               {"peak"},
               {"reserve", Align::right, 4},
               {"capacity", Align::right, 3},
               {"spare", Align::right, 2}});
  int number = 0;
  for (const StageCost& stage : cost.stages)
    table.row({std::to_string(++number), in_gibibytes(stage.weights), in_gibibytes(stage.gradients),
               in_gibibytes(stage.optimizer_state), in_gibibytes(stage.activations),
               in_gibibytes(stage.workspace), in_gibibytes(stage.peak_memory()),
               in_gibibytes(stage.reserve), in_gibibytes(stage.capacity),
               in_gibibytes(stage.spare())});
  return table.str(style);
}

}  // namespace plait
