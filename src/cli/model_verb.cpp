#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cli/terminal.h"
#include "cli/verbs.h"
#include "io/format/json_writer.h"
#include "io/model/load_model.h"
#include "io/model/zoo.h"
#include "report/quantities.h"
#include "report/summary.h"

namespace plait {
namespace {

constexpr double kPasses = 3;  // forward, and twice as much backward

struct ModelArguments {
  std::string model;
  std::optional<int> sequence;
  bool json = false;
};

std::vector<int> units_by_kind(const Model& model) {
  std::vector<int> count(model.kinds.size());
  for (const int kind : model.units) ++count[kind];
  return count;
}

std::string as_json(const LoadedModel& loaded) {
  const Model& model = loaded.model;
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
  std::vector<std::string> warnings;
  for (const std::string& warning : loaded.warnings) warnings.push_back(json_text(warning));
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
                          .json("warnings", json_list(warnings))
                          .str());
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

std::string as_table(const Model& model) {
  const Style style = style_of(stdout);
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
               percent(count[k] * kind.parameters() / model.parameters()),
               fmt::format("{:.4g}", kind.forward().value / 1e9),
               percent(count[k] * kind.forward() / model.forward()),
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

int describe_model(const ModelArguments& arguments) {
  const LoadedModel loaded = load_model(arguments.model, arguments.sequence);
  if (!arguments.json)
    for (const std::string& warning : loaded.warnings) warn(warning);
  print(arguments.json ? as_json(loaded) : as_table(loaded.model));
  return kDone;
}

}  // namespace

Command model_command() {
  const auto arguments = std::make_shared<ModelArguments>();
  Command command;
  command.groups = {
      {"Arguments",
       {{.name = "MODEL",
         .value = "MODEL",
         .help = "a name from plait models, a Hugging Face config.json, a plait model file, or a "
                 "file with Megatron-LM flags",
         .set = into_text(arguments->model),
         .choices = zoo_names(),
         .required = true}}},
      {"Flags",
       {{.name = "--seq",
         .value = "N",
         .help = "tokens in a sample; the model's own by default",
         .set = into_integer(arguments->sequence, 1, 1 << 24),
         .hidden = {"--seq-length", "--sequence-length"}},
        {.name = "--json",
         .value = "",
         .help = "print JSON",
         .set = into_switch(arguments->json)}}}};
  command.run = [arguments] { return describe_model(*arguments); };
  return command;
}

}  // namespace plait
