#include "app/known/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/request/ranked_plan_json.h"
#include "io/model/load_model.h"
#include "report/quantities.h"
#include "report/summary.h"

namespace plait {
namespace {

constexpr double kPasses = 3;  // forward, and twice as much backward

std::vector<int> units_by_kind(const Model& model) {
  std::vector<int> count(model.kinds.size());
  for (const int kind : model.units) ++count[kind];
  return count;
}

// Units that have parameters in common: two, or a chain of units that are tied one to the next.
struct Shared {
  int first = 0;
  int last = 0;
  int units = 2;
  double parameters = 0;
};

std::vector<Shared> shared_parameters(const Model& model) {
  std::map<std::pair<int, int>, double> by_pair;
  for (const Tie& tie : model.ties) by_pair[{tie.first, tie.second}] += tie.parameters;
  std::vector<Shared> out;
  for (const auto& tied : by_pair) {
    const int first = tied.first.first;
    const int last = tied.first.second;
    const auto before = std::ranges::find_if(out, [&](const Shared& shared) {
      return shared.last == first && shared.parameters == tied.second;
    });
    if (before == out.end()) {
      out.push_back({first, last, 2, tied.second});
    } else {
      before->last = last;
      ++before->units;
    }
  }
  return out;
}

// Models of one's own may be without parameters, or without work.
std::string share_of(double part, double whole) { return whole > 0 ? percent(part / whole) : "-"; }

}  // namespace

LoadedModel answer(const ModelRequest& request) {
  return load_model(request.model, request.sequence);
}

std::string to_json(const LoadedModel& answer) {
  const Model& model = answer.model;
  const std::vector<int> count = units_by_kind(model);
  std::vector<std::string> kinds;
  for (std::size_t k = 0; k < model.kinds.size(); ++k)
    kinds.push_back(JsonObject()
                        .text("name", model.kinds[k].name)
                        .number("count", count[k])
                        .number("parameters", model.kinds[k].parameters())
                        .number("forward_flops", model.kinds[k].forward().value)
                        .number("ops", static_cast<double>(model.kinds[k].ops.size()))
                        .str());
  return lay_out_json(JsonObject()
                          .text("name", model.name)
                          .number("parameters", model.parameters())
                          .number("layers", layer_count(model))
                          .number("units", model.unit_count())
                          .number("sequence_length", model.sequence_length)
                          .number("vocabulary", model.vocabulary)
                          .boolean("causal", model.causal)
                          .number("forward_flops_per_sample", model.forward().value)
                          .number("flops_per_sample", kPasses * model.forward().value)
                          .json("kinds", json_list(kinds))
                          .json("warnings", sentences_json(answer.warnings))
                          .str());
}

std::string as_text(const LoadedModel& answer, const Style& style) {
  const Model& model = answer.model;
  const std::vector<int> count = units_by_kind(model);
  Table table({{"units"},
               {"kind", Align::left},
               {"parameters each"},
               {"share"},
               {"forward GFLOP each"},
               {"share"},
               {"ops", Align::right, 3}});
  for (std::size_t k = 0; k < model.kinds.size(); ++k) {
    const LayerKind& kind = model.kinds[k];
    table.row({std::to_string(count[k]), kind.name, grouped(kind.parameters()),
               share_of(count[k] * kind.parameters(), model.parameters()),
               fmt::format("{:.4g}", kind.forward().value / 1e9),
               share_of(count[k] * kind.forward().value, model.forward().value),
               std::to_string(kind.ops.size())});
  }
  std::string out = style.bold(summary_of(model)) + "\n\n" + table.str(style) + "\n";
  out += fmt::format("parameters          {}\n", grouped(model.parameters()));
  for (const Shared& shared : shared_parameters(model))
    out += fmt::format("tied                units {} {} {} share {} of them\n", shared.first,
                       shared.units == 2 ? "and" : "to", shared.last, grouped(shared.parameters));
  out += fmt::format("flops per sample    {:.4g} forward, {:.4g} forward and backward\n",
                     model.forward().value, kPasses * model.forward().value);
  return out;
}

}  // namespace plait
