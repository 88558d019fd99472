#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/clusters/pareto.h"
#include "app/request/ranked_plan_json.h"
#include "cost/engine.h"
#include "io/cluster/device_json.h"
#include "io/format/csv.h"
#include "io/plan/plan_json.h"
#include "plan/describe.h"
#include "report/pareto_svg.h"
#include "report/plan_tables.h"
#include "report/quantities.h"
#include "report/summary.h"

namespace plait {
namespace {

// "2 p4d.24xlarge + 1 g5.24xlarge"
std::string mix_in_words(const ParetoAnswer& answer, const MixPoint& point) {
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < point.mix.size(); ++k)
    if (point.mix[k] > 0)
      parts.push_back(fmt::format("{} {}", point.mix[k], answer.instances[k].label()));
  return fmt::format("{}", fmt::join(parts, " + "));
}

std::string training_in_words(const ParetoAnswer& answer, const MixPoint& point) {
  const Training all = answer.training(point);
  return fmt::format("{}: {}, {}", mix_in_words(answer, point), long_time(all.time),
                     in_words(all.price));
}

// What the limits choose; the fewest nodes that meet a deadline, and what fewer take.
std::string choice_in_words(const ParetoAnswer& answer) {
  if (!answer.chosen) return "";
  const Objective& wanted = answer.objective;
  std::vector<std::string> limits;
  if (wanted.deadline) limits.push_back(long_time(*wanted.deadline));
  if (wanted.budget) limits.push_back(in_words(*wanted.budget));
  std::string out = fmt::format(
      "The {} within {}: {}.", wanted.best_by() == Metric::cost ? "cheapest" : "fastest",
      fmt::join(limits, " and "), training_in_words(answer, *answer.chosen));
  if (!wanted.deadline) return out;
  const ParetoResult& r = answer.result;
  if (r.fewest && node_count(r.fewest->mix) < node_count(answer.chosen->mix))
    out += fmt::format(" The fewest nodes: {}.", training_in_words(answer, *r.fewest));
  if (r.too_slow) out += fmt::format(" Too slow: {}.", training_in_words(answer, *r.too_slow));
  return out;
}

std::string point_json(const ParetoAnswer& answer, const MixPoint& p, bool with_plan) {
  JsonObject instances;
  for (std::size_t k = 0; k < p.mix.size(); ++k)
    instances.number(answer.instances[k].label(), p.mix[k]);
  JsonObject object;
  object.json("instances", instances.str())
      .number("usd_per_hour", in_usd_per_hour(p.rent))
      .number("step_s", p.step().value)
      .number("usd_per_step", p.price().value)
      .number("tokens_per_s", tokens_per_second(answer.problem, p.step()));
  if (answer.length) object.json("training", training_json(answer.training(p)));
  object.text("cluster", answer.cluster(p)).text("describe", describe(answer.plan(p)));
  if (with_plan) object.json("plan", plan_to_json(answer.plan(p)));
  return object.str();
}

}  // namespace

std::string reason(const ParetoAnswer& answer) {
  if (answer.found()) return answer.missed;
  return answer.result.cut_short
             ? "cut short before any plan was found; give more `time_limit`"
             : fmt::format("{} fits on none of these mixes; plait plan says what is missing",
                           answer.problem.model.name);
}

std::string as_text(const ParetoAnswer& answer, const Style& style) {
  Table table(
      {{answer.length ? "price" : "$/step"},
       {answer.length ? "time" : "step"},
       {answer.length ? "step" : "", Align::right, 2},
       {"$/hour", Align::right, 1},
       {answer.problem.model.sequence_length > 1 ? "tokens/s" : "samples/s", Align::right, 3},
       {"instances", Align::left},
       {"plan", Align::left}});
  for (const MixPoint& p : answer.result.front) {
    const Training all = answer.training(p);
    table.row({in_words(all.price), answer.length ? long_time(all.time) : in_words(all.time),
               answer.length ? in_words(p.step()) : "",
               fmt::format("{:.2f}", in_usd_per_hour(p.rent)),
               grouped(tokens_per_second(answer.problem, p.step())), mix_in_words(answer, p),
               short_description(p.best.plan)});
  }
  const ParetoResult& r = answer.result;
  std::string out = style.bold(summary_of(answer.problem.model)) + "\n" +
                    paragraph(summary_of(answer.problem, answer.target), style) + "\n" +
                    table.str(style) + "\n";
  std::string note = fmt::format(
      "Mixes of instances: {}. No other is both as cheap and as fast; {} could be, and were "
      "planned, "
      "in {}.",
      grouped(static_cast<double>(r.mixes)), grouped(static_cast<double>(r.planned)),
      in_words(answer.elapsed));
  if (r.cut_short) note += " Cut short: the front so far.";
  if (const std::string choice = choice_in_words(answer); !choice.empty())
    out += paragraph(choice, style) + "\n";
  for (const auto& [cloud, point] : answer.other_clouds)
    out += paragraph(fmt::format(
                         "The cheapest of {}: {}, {}{}.", cloud, mix_in_words(answer, point),
                         in_words(answer.training(point).price),
                         answer.length ? " and " + long_time(answer.training(point).time)
                                       : fmt::format(" for a step of {}", in_words(point.step()))),
                     style) +
           "\n";
  return out + paragraph(note, style);
}

std::string to_json(const ParetoAnswer& answer) {
  std::vector<std::string> points;
  std::vector<std::string> behind;
  std::vector<std::string> others;
  for (const MixPoint& p : answer.result.front) points.push_back(point_json(answer, p, true));
  for (const MixPoint& p : answer.result.behind) behind.push_back(point_json(answer, p, false));
  for (const auto& [cloud, point] : answer.other_clouds)
    others.push_back(point_json(answer, point, false));
  return lay_out_json(
      JsonObject()
          .json("front", json_list(points))
          .json("behind", json_list(behind))
          .json("other_clouds", json_list(others))
          .json("chosen", answer.chosen ? point_json(answer, *answer.chosen, true) : "null")
          .text("missed", answer.missed)
          .number("mixes", static_cast<double>(answer.result.mixes))
          .number("planned", static_cast<double>(answer.result.planned))
          .number("evaluations", static_cast<double>(answer.result.evaluations))
          .number("search_s", answer.elapsed.value)
          .boolean("cut_short", answer.result.cut_short)
          .json("warnings", sentences_json(answer.warnings))
          .text("model", answer.problem.model.name)
          .str());
}

std::string to_csv(const ParetoAnswer& answer) {
  std::vector<std::string> header;
  for (const Offer& offer : answer.instances) header.push_back(offer.label());
  for (const char* name : {"usd_per_hour", "step_s", "usd_per_step"}) header.emplace_back(name);
  if (answer.length)
    for (const char* name : {"steps", "training_s", "training_usd"}) header.emplace_back(name);
  header.emplace_back("plan");
  std::string out = csv_line(header);
  for (const MixPoint& p : answer.result.front) {
    std::vector<std::string> cells;
    for (const int count : p.mix) cells.push_back(std::to_string(count));
    for (const double value : {in_usd_per_hour(p.rent), p.step().value, p.price().value})
      cells.push_back(json_number(value));
    const Training all = answer.training(p);
    if (answer.length)
      for (const double value : {all.steps, all.time.value, all.price.value})
        cells.push_back(json_number(value));
    cells.push_back(describe(answer.plan(p)));
    out += csv_line(cells);
  }
  return out;
}

std::string as_svg(const ParetoAnswer& answer) {
  constexpr double kDay = 24 * kSecondsPerHour;
  Chart chart{fmt::format("{}: price and time of {}", answer.problem.model.name,
                          answer.length ? "the training" : "a step"),
              answer.length ? "price, USD" : "price of a step, USD",
              answer.length ? "time, days" : "time of a step, s",
              {}};
  const auto add = [&](const MixPoint& p, bool on_front) {
    const Training all = answer.training(p);
    chart.points.push_back({all.price.value, answer.length ? all.time.value / kDay : all.time.value,
                            on_front, mix_in_words(answer, p)});
  };
  for (const MixPoint& p : answer.result.behind) add(p, false);
  for (const MixPoint& p : answer.result.front) add(p, true);
  return chart_svg(chart);
}

}  // namespace plait
