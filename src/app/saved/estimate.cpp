#include "app/saved/estimate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "app/request/prediction_error.h"
#include "app/request/ranked_plan_json.h"
#include "app/request/request_error.h"
#include "app/request/saved_target.h"
#include "plan/describe.h"
#include "report/plan_tables.h"
#include "report/quantities.h"
#include "report/summary.h"
#include "report/timeline.h"

namespace plait {
namespace {

// Whether anything was measured.
bool has_measurements(const EstimateAnswer& answer) {
  return std::ranges::any_of(answer.sources, [](const UnitSource& source) {
    return source.origin.time != Source::analytic || source.origin.memory != Source::analytic;
  });
}

// "all_reduce, send": collectives whose measured curves are used.
std::string measured_collectives(const Problem& problem) {
  std::set<std::string> names;
  for (const auto& [key, curve] : problem.profile.collectives) names.insert(key.collective);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string totals(const EstimateAnswer& answer, const Style& style) {
  Table table({{"", Align::left}, {"simulated"}, {"closed form"}, {"", Align::left}});
  const auto row = [&](const char* name, Seconds Estimate::*field, const char* meaning) {
    table.row({name, in_words(answer.simulated.*field), in_words(answer.formula.*field), meaning});
  };
  row("step", &Estimate::step, "one optimizer step, end to end");
  row("pipeline", &Estimate::pipeline, "from the first forward to the last backward");
  row("bubble", &Estimate::bubble, "of that, idle time of the busiest stage");
  row("tail", &Estimate::after_pipeline, "gradient sync and optimizer that follow");
  return table.str(style);
}

std::string rates(const EstimateAnswer& answer) {
  const Seconds step = answer.simulated.step;
  const Problem& problem = answer.file.problem;
  std::string out = fmt::format("{} tokens/s, MFU {}", grouped(tokens_per_second(problem, step)),
                                percent(model_flops_utilisation(problem, answer.file.plan, step)));
  if (problem.model.causal)
    out += fmt::format(" ({} if causal attention counts as a full square)",
                       percent(full_attention_utilisation(problem, answer.file.plan, step)));
  const Usd price = price_of_step(answer.file.problem, answer.file.plan, step);
  if (price > Usd(0))
    out += fmt::format(
        ", {} a step, {} for a million tokens, {} an hour", in_words(price),
        in_words(price * (1e6 / (tokens_per_second(answer.file.problem, step) * step.value))),
        in_words(price * (kSecondsPerHour / step.value)));
  return out;
}

std::string errors_in_words(const EstimateAnswer& answer) {
  const RankedPlan plan{answer.file.plan, answer.simulated};
  const std::string memory = memory_doubt_in_words(answer.file.problem, plan);
  return step_band_in_words(answer.file.problem, plan) + (memory.empty() ? "" : " " + memory);
}

std::string times(const EstimateAnswer& answer, const Style& style) {
  Table table({{"stage"},
               {"forward"},
               {"+ comm"},
               {"backward"},
               {"recompute", Align::right, 3},
               {"+ comm"},
               {"send", Align::right, 4},
               {"grad sync", Align::right, 1},
               {"tied sync", Align::right, 5},
               {"optimizer", Align::right, 2},
               {"source", Align::left, 6}});
  int number = 0;
  for (const StageCost& stage : answer.simulated.stages)
    table.row({std::to_string(++number), in_words(stage.forward), in_words(stage.forward_comm),
               in_words(stage.backward), in_words(stage.recompute), in_words(stage.backward_comm),
               in_words(stage.send), in_words(stage.gradient_sync), in_words(stage.tied_sync),
               in_words(stage.optimizer), std::string(name_of(stage.source))});
  return table.str(style);
}

// "1", "2-4"
std::string stage_numbers(int first, int last) {
  return first == last ? std::to_string(first + 1) : fmt::format("{}-{}", first + 1, last + 1);
}

// Stages that say the same are one line.
std::string sources(const EstimateAnswer& answer, const Style& style) {
  struct Line {
    int first = 0;
    int last = 0;
    UnitSource what;
  };
  std::vector<Line> lines;
  for (const UnitSource& source : answer.sources) {
    const auto same = std::ranges::find_if(lines, [&](const Line& line) {
      return line.last >= source.stage - 1 && line.what.unit == source.unit &&
             line.what.device_type == source.device_type && line.what.origin == source.origin;
    });
    if (same == lines.end())
      lines.push_back({source.stage, source.stage, source});
    else
      same->last = source.stage;
  }
  Table table({{"stages"},
               {"unit", Align::left},
               {"device", Align::left, 1},
               {"time", Align::left},
               {"activations", Align::left}});
  for (const Line& line : lines)
    table.row({stage_numbers(line.first, line.last), line.what.unit, line.what.device_type,
               in_words(line.what.origin), std::string(name_of(line.what.origin.memory))});
  return table.str(style);
}

std::string devices(const EstimateAnswer& answer, const Style& style) {
  Table table({{"stage"},
               {"node", Align::left},
               {"devices", Align::left, 1},
               {"ids", Align::left, 2},
               {"what", Align::left}});
  for (int s = 0; s < answer.file.plan.stage_count(); ++s) {
    const Stage& stage = answer.file.plan.stages[s];
    std::map<int, std::vector<DeviceId>> by_node;
    for (const DeviceId id : stage.devices)
      by_node[answer.file.problem.cluster.device(id).node].push_back(id);
    bool first = true;
    for (const auto& [node, ids] : by_node) {
      table.row({first ? std::to_string(s + 1) : "", answer.file.problem.cluster.nodes[node].name,
                 types_of(answer.file.problem.cluster, ids), device_ranges(ids),
                 first ? units_in_words(answer.file.problem.model, stage) : ""});
      first = false;
    }
  }
  return table.str(style);
}

std::string totals_json(const Estimate& estimate) {
  return JsonObject()
      .number("step_s", estimate.step.value)
      .number("pipeline_s", estimate.pipeline.value)
      .number("bubble_s", estimate.bubble.value)
      .number("tail_s", estimate.after_pipeline.value)
      .str();
}

std::string source_json(const UnitSource& source) {
  const Origin& origin = source.origin;
  JsonObject object;
  object.number("stage", source.stage)
      .number("span", source.span)
      .json("units", fmt::format("[{}, {}]", source.units.begin, source.units.end))
      .text("unit", source.unit)
      .text("device_type", source.device_type)
      .text("time", name_of(origin.time))
      .text("activations", name_of(origin.memory));
  if (origin.time == Source::interpolated)
    object.json("from", JsonObject()
                            .number("tensor", origin.tensor)
                            .number("sequence", origin.sequence)
                            .json("micro_batch", fmt::format("[{}, {}]", origin.micro_batch_low,
                                                             origin.micro_batch_high))
                            .str());
  return object.str();
}

// Before memory is taken for a trace that no viewer opens.
void check_trace_size(const Plan& plan) {
  constexpr double kMostEvents = 1e6;
  double events = 0;
  for (const Stage& stage : plan.stages) events += 2.0 * plan.micro_batches * chunk_count(stage);
  if (events > kMostEvents)
    throw RequestError("trace", fmt::format("would have {:.3g} events, at most {:.3g} are written: "
                                            "make a plan with fewer micro-batches",
                                            events, kMostEvents));
}

}  // namespace

EstimateAnswer answer(const EstimateRequest& request) {
  PlanFile file = request.file;
  apply(request.memory, file.problem.job);
  memory_warnings(file.problem.cluster, file.problem.job);
  set_prices(request.prices, builtin_catalogue(), file.problem.cluster);
  const auto& [problem, plan, made_by] = file;
  if (request.trace) check_trace_size(plan);
  const CostEngine engine(problem);
  Trace trace;
  EstimateAnswer out{request.name,          file,
                     engine.estimate(plan), engine.simulate(plan, request.trace ? &trace : nullptr),
                     engine.sources(plan),  std::nullopt};
  if (request.trace) out.trace = predicted_trace(plan, out.simulated, trace);
  return out;
}

std::string reason(const EstimateAnswer& answer) {
  if (answer.simulated.fits) return "";
  return fmt::format("{} does not fit: {}", answer.name,
                     shortage(answer.file.problem, {answer.file.plan, answer.simulated}));
}

std::string as_text(const EstimateAnswer& answer, const Style& style) {
  std::string out =
      problem_heading(answer.file.problem, style, saved_target(answer.file).name) + "\n";
  out += paragraph(describe(answer.file.plan), style, 2) + "\n" + totals(answer, style) + "\n" +
         paragraph(rates(answer), style) + paragraph(errors_in_words(answer), style) + "\n";
  out += style.bold("Time") + " of one micro-batch, of " +
         std::to_string(answer.file.plan.micro_batches) +
         " in a step; syncs and optimizer once a step\n";
  out += times(answer, style) + "\n";
  out += style.bold("Memory") + " of the device that has least to spare, GiB\n";
  out += memory_table(answer.simulated, style) + "\n" + style.bold("Sources") + "\n";
  out += has_measurements(answer) ? sources(answer, style)
                                  : "times and activations of all units are analytic\n";
  const std::string curves = measured_collectives(answer.file.problem);
  out += curves.empty() ? "communication is analytic\n"
                        : fmt::format(
                              "communication: {} measured for some groups, the rest "
                              "analytic\n",
                              curves);
  out += "\n" + style.bold("Devices") + "\n" + devices(answer, style);
  return out;
}

JsonObject estimate_object(const EstimateAnswer& answer) {
  std::vector<std::string> sources;
  for (const UnitSource& source : answer.sources) sources.push_back(source_json(source));
  return ranked_plan_object(answer.file.problem, {answer.file.plan, answer.simulated})
      .boolean("fits", answer.simulated.fits)
      .json("simulated", totals_json(answer.simulated))
      .json("closed_form", totals_json(answer.formula))
      .json("sources", json_list(sources))
      .text("measured_collectives", measured_collectives(answer.file.problem));
}

std::string to_json(const EstimateAnswer& answer) {
  return lay_out_json(estimate_object(answer).str());
}

}  // namespace plait
