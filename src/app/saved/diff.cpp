#include "app/saved/diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "app/saved/explain.h"
#include "base/printable.h"
#include "cost/engine.h"
#include "io/format/json_writer.h"
#include "plan/describe.h"
#include "plan/names.h"
#include "report/plan_tables.h"
#include "report/quantities.h"
#include "report/summary.h"

namespace plait {
namespace {

// One value where it is the same everywhere, else all of them, stage by stage.
std::string by_stage(const Plan& plan, const std::function<std::string(const Stage&)>& value) {
  std::vector<std::string> values;
  for (const Stage& stage : plan.stages) values.push_back(value(stage));
  const bool equal =
      std::ranges::all_of(values, [&](const std::string& own) { return own == values.front(); });
  return equal ? values.front() : fmt::format("{}", fmt::join(values, ","));
}

std::string units_of(const Stage& stage) {
  std::string text;
  for (const Span& span : stage.spans) {
    if (&span != &stage.spans.front()) text += span.chunk == (&span - 1)->chunk ? "+" : "/";
    text += std::to_string(span.units.size());
  }
  return text;
}

std::string devices_of(const Plan& plan, const Cluster& cluster) {
  std::vector<DeviceId> all;
  for (const Stage& stage : plan.stages)
    all.insert(all.end(), stage.devices.begin(), stage.devices.end());
  return types_of(cluster, all);
}

struct Dimension {
  const char* what;
  std::string (*value)(const PlanFile&);
};

const Dimension kDimensions[] = {
    {"devices", [](const PlanFile& f) { return devices_of(f.plan, f.problem.cluster); }},
    {"stages", [](const PlanFile& f) { return std::to_string(f.plan.stage_count()); }},
    {"tensor",
     [](const PlanFile& f) {
       return by_stage(f.plan, [](const Stage& s) { return std::to_string(s.spans[0].tensor); });
     }},
    {"data",
     [](const PlanFile& f) {
       return by_stage(f.plan, [](const Stage& s) { return std::to_string(s.spans[0].data); });
     }},
    {"context", [](const PlanFile& f) { return std::to_string(f.plan.context); }},
    {"expert", [](const PlanFile& f) { return std::to_string(f.plan.expert); }},
    {"micro-batches", [](const PlanFile& f) { return std::to_string(f.plan.micro_batches); }},
    {"samples of a micro-batch on a replica",
     [](const PlanFile& f) {
       const double samples = 1.0 * f.problem.job.global_batch / f.plan.micro_batches;
       return by_stage(f.plan, [&](const Stage& s) {
         return fmt::format("{:.4g}", samples / s.spans[0].data);
       });
     }},
    {"schedule", [](const PlanFile& f) { return std::string(name_of(f.plan.schedule)); }},
    {"ZeRO stage", [](const PlanFile& f) { return std::string(name_of(f.plan.zero)); }},
    {"sequence parallel",
     [](const PlanFile& f) { return std::string(f.plan.sequence_parallel ? "on" : "off"); }},
    {"recompute",
     [](const PlanFile& f) {
       return by_stage(f.plan,
                       [&](const Stage& s) { return recompute_in_words(f.problem.model, s); });
     }},
    {"units of the stages", [](const PlanFile& f) { return by_stage(f.plan, units_of); }},
};

// The named parts of a step, which add up to it, and the memory of the tightest stage.
struct Term {
  const char* what;
  const char* key;
  Seconds StepShares::*part;
};
constexpr Term kTerms[] = {{"compute", "compute_s", &StepShares::compute},
                           {"recompute", "recompute_s", &StepShares::recompute},
                           {"communication", "communication_s", &StepShares::communication},
                           {"bubble", "bubble_s", &StepShares::bubble},
                           {"gradients, optimizer", "tail_s", &StepShares::after_pipeline}};

RankedPlan ranked(const DiffAnswer& answer, int i) {
  return {answer.files[i].plan, answer.costs[i]};
}

std::string signed_time(Seconds time) {
  return time == Seconds(0) ? "0" : (time > Seconds(0) ? "+" : "") + in_words(time);
}

std::string memory_of(const Estimate& cost) {
  const StageCost& stage = cost.stages[tightest_stage(cost)];
  return fmt::format("{} / {} GiB{}", in_gibibytes(stage.peak_memory()),
                     in_gibibytes(stage.capacity), cost.fits ? "" : " (does not fit)");
}

std::string verdict(const DiffAnswer& answer) {
  std::string text;
  if (!answer.other_problem.empty())
    text = fmt::format("The plans are of different problems: {} differ{}. ",
                       fmt::join(answer.other_problem, ", "),
                       answer.other_problem.size() == 1 ? "s" : "");
  const double change = answer.change();
  const std::string_view per_token =
      answer.same_work() ? "" : " for a token: their steps train different numbers of them";
  if (std::abs(change) < 5e-5) return text + fmt::format("Both take the same time{}.", per_token);
  return text + fmt::format("{} is {} than {}{}.", printable(answer.names[1]),
                            plait::change(change, "slower", "faster"), printable(answer.names[0]),
                            per_token);
}

// Tokens of a step; samples where the model has no tokens.
double work_of(const PlanFile& file) {
  return 1.0 * file.problem.job.global_batch * std::max(1, file.problem.model.sequence_length);
}

// What differs between two jobs, in words; "the job" where it is none of the usual things.
std::vector<std::string> differing_parts(const Job& a, const Job& b) {
  std::vector<std::string> parts;
  const auto compare = [&](bool same, const char* what) {
    if (!same) parts.emplace_back(what);
  };
  compare(a.global_batch == b.global_batch, "the global batch");
  compare(a.precision == b.precision, "the number format");
  compare(a.optimizer == b.optimizer, "the optimizer");
  compare(a.attention == b.attention, "the attention");
  compare(a.adapters == b.adapters && a.adapter_rank == b.adapter_rank &&
              a.four_bit_weights == b.four_bit_weights,
          "the adapters");
  compare(a.framework.name == b.framework.name, "the program");
  const bool overlaps = a.framework.name != b.framework.name || a.framework == b.framework;
  compare(overlaps && a.overlap == b.overlap, "what is overlapped");
  if (parts.empty() && !(a == b)) parts.emplace_back("the job");
  return parts;
}

// "$1.51", of a million tokens; "" where there is no price or there are no tokens.
std::string token_price(const DiffAnswer& answer, int i) {
  const PlanFile& file = answer.files[i];
  const Usd price = price_of_step(file.problem, file.plan, answer.costs[i].step);
  if (price <= Usd(0) || file.problem.model.sequence_length <= 1) return "";
  return in_words(price * (1e6 / work_of(file)));
}

}  // namespace

bool DiffAnswer::same_work() const { return work_of(files[0]) == work_of(files[1]); }

double DiffAnswer::change() const {
  return (costs[1].step / costs[0].step) * (work_of(files[0]) / work_of(files[1])) - 1;
}

DiffAnswer answer(const DiffRequest& request) {
  DiffAnswer out{request.names, request.files, {}, {}, {}};
  for (int i = 0; i < 2; ++i)
    out.costs[i] = CostEngine(out.files[i].problem).simulate(out.files[i].plan);
  const Problem& a = out.files[0].problem;
  const Problem& b = out.files[1].problem;
  if (!(a.model == b.model)) out.other_problem.emplace_back("the model");
  if (!(a.cluster == b.cluster)) out.other_problem.emplace_back("the cluster");
  if (!(a.profile == b.profile)) out.other_problem.emplace_back("the profile");
  for (std::string& part : differing_parts(a.job, b.job))
    out.other_problem.push_back(std::move(part));
  for (const auto& [what, value] : kDimensions)
    out.dimensions.push_back({what, {value(out.files[0]), value(out.files[1])}});
  return out;
}

std::string as_text(const DiffAnswer& answer, const Style& style) {
  Table table({{"", Align::left},
               {printable(answer.names[0])},
               {printable(answer.names[1])},
               {"change", Align::left}});
  const auto time_row = [&](const std::string& what, Seconds a, Seconds b) {
    table.row({what, in_words(a), in_words(b), signed_time(b - a)});
  };
  time_row("step", answer.costs[0].step, answer.costs[1].step);
  const StepShares mine = shares_of(ranked(answer, 0));
  const StepShares theirs = shares_of(ranked(answer, 1));
  for (const Term& term : kTerms)
    time_row(std::string("  ") + term.what, mine.*term.part, theirs.*term.part);
  if (!answer.same_work()) {
    const auto rate = [&](int i) {
      return grouped(work_of(answer.files[i]) / answer.costs[i].step.value);
    };
    const bool tokens = answer.files[0].problem.model.sequence_length > 1;
    table.row({tokens ? "tokens/s" : "samples/s", rate(0), rate(1), ""});
  }
  if (const auto mine_costs = token_price(answer, 0), theirs_costs = token_price(answer, 1);
      !mine_costs.empty() && !theirs_costs.empty() && mine_costs != theirs_costs)
    table.row({"price of a million tokens", mine_costs, theirs_costs, ""});
  std::array<std::string, 2> flops;
  for (int i = 0; i < 2; ++i)
    flops[i] = percent(model_flops_utilisation(answer.files[i].problem, answer.files[i].plan,
                                               answer.costs[i].step));
  table.row({"MFU", flops[0], flops[1], ""});
  table.row({"fullest device", memory_of(answer.costs[0]), memory_of(answer.costs[1]), ""});
  for (const DiffRow& row : answer.dimensions)
    if (row.differs()) table.row({row.what, row.values[0], row.values[1], ""});
  std::vector<std::string> same;
  for (const DiffRow& row : answer.dimensions)
    if (!row.differs()) same.push_back(fmt::format("{} {}", row.what, row.values[0]));
  std::string out = paragraph(verdict(answer), style) + "\n" + table.str(style);
  if (!same.empty())
    out += "\n" + paragraph(fmt::format("The same in both: {}.", fmt::join(same, ", ")), style);
  return out;
}

std::string to_json(const DiffAnswer& answer) {
  std::vector<std::string> plans;
  for (int i = 0; i < 2; ++i) {
    const StepShares shares = shares_of(ranked(answer, i));
    JsonObject terms;
    for (const Term& term : kTerms) terms.number(term.key, (shares.*term.part).value);
    plans.push_back(
        JsonObject()
            .text("name", answer.names[i])
            .text("describe", describe(answer.files[i].plan))
            .number("step_s", answer.costs[i].step.value)
            .number("tokens_per_s", work_of(answer.files[i]) / answer.costs[i].step.value)
            .number("usd_per_step", price_of_step(answer.files[i].problem, answer.files[i].plan,
                                                  answer.costs[i].step)
                                        .value)
            .json("terms", terms.str())
            .number("peak_memory_GiB", answer.costs[i].peak_memory().value / 0x1p30)
            .boolean("fits", answer.costs[i].fits)
            .str());
  }
  std::vector<std::string> rows;
  for (const DiffRow& row : answer.dimensions)
    if (row.differs())
      rows.push_back(JsonObject()
                         .text("what", row.what)
                         .text("first", row.values[0])
                         .text("second", row.values[1])
                         .str());
  std::vector<std::string> parts;
  for (const std::string& part : answer.other_problem) parts.push_back(json_text(part));
  return lay_out_json(JsonObject()
                          .json("plans", json_list(plans))
                          .number("change", answer.change())
                          .json("differences", json_list(rows))
                          .json("problems_differ_in", json_list(parts))
                          .str());
}

}  // namespace plait
