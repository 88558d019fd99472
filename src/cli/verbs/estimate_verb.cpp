#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "app/request/output_file.h"
#include "app/request/request_error.h"
#include "app/saved/configured.h"
#include "app/saved/estimate.h"
#include "base/error.h"
#include "cli/flags/configured_flags.h"
#include "cli/flags/field_flags.h"
#include "cli/terminal/terminal.h"
#include "cli/verbs/console_session.h"
#include "io/format/text_file.h"

namespace plait {
namespace {

struct EstimateArguments {
  std::string path;
  std::string from;
  std::string output;              // of the faster plan
  ConfiguredArguments configured;  // where the configuration of another program is read
  std::string trace;
  bool json = false;
};

int estimate_configured(const EstimateArguments& arguments) {
  check_output(arguments.trace);
  check_output(arguments.output);
  ConfiguredEstimateRequest request;
  request.configured = configured_request(arguments.from, arguments.path, arguments.configured);
  request.trace = !arguments.trace.empty();
  request.threads = usual_threads();
  const ConfiguredEstimate estimated = answer_here(request, arguments.json);
  if (estimated.estimate.trace) write_text_file(arguments.trace, *estimated.estimate.trace);
  if (!arguments.output.empty() && estimated.faster)
    write_text_file(arguments.output, faster_plan_file(estimated));
  print(in_flags(arguments.json ? to_json(estimated) : as_text(estimated, style_of(stdout))));
  const std::string why = reason(estimated.estimate);
  if (why.empty()) return kDone;
  complain(why);
  return kNothingFits;
}

// Flags that only a configuration needs, which say what a saved plan says itself.
void refuse_source_flags(const EstimateArguments& arguments) {
  const ConfiguredRequest asked = configured_request("", "", arguments.configured);
  const ProblemSource& source = asked.source;
  const std::pair<const char*, bool> given[] = {
      {"--cluster", !source.cluster.empty()},     {"--model", !source.model.empty()},
      {"--device", !source.device.empty()},       {"--seq", source.sequence.has_value()},
      {"--framework", !source.framework.empty()}, {"--output", !arguments.output.empty()}};
  for (const auto& [flag, is_given] : given)
    if (is_given)
      throw InputError(flag, "goes with --from: a saved plan says what it was made for");
  if (const std::string_view told = first_told(asked); !told.empty())
    throw RequestError(told, "goes with `from`: a saved plan says it itself");
}

// Programs whose configurations are not read, and what is said instead.
void refuse_other_form(const std::string& program) {
  struct Other {
    std::vector<std::string_view> names;
    std::string_view words;
  };
  static const Other kOthers[] = {
      {{"axolotl", "llama-factory", "trl", "transformers", "huggingface", "hf", "lightning"},
       "of its configuration the file of DeepSpeed (--from deepspeed) or accelerate (--from fsdp) "
       "is read"},
      {{"torchtitan", "nemo", "megatron-bridge", "maxtext", "nanotron", "torchtune"},
       "its configuration is not read; plait plan with --framework, --tp, --pp, --zero and "
       "--micro-batch prices what it says"}};
  for (const Other& other : kOthers)
    if (std::ranges::find(other.names, program) != other.names.end())
      throw InputError("--from", fmt::format("'{}': {}", program, other.words));
}

int estimate(const EstimateArguments& arguments) {
  if (!arguments.from.empty()) return estimate_configured(arguments);
  refuse_source_flags(arguments);
  const EstimateRequest request{arguments.path, read_plan_file(arguments.path),
                                !arguments.trace.empty(), arguments.configured.memory,
                                arguments.configured.prices};
  check_output(arguments.trace);
  const EstimateAnswer estimated = answer(request);
  if (estimated.trace) write_text_file(arguments.trace, *estimated.trace);
  print(arguments.json ? to_json(estimated) : as_text(estimated, style_of(stdout)));
  const std::string why = reason(estimated);
  if (why.empty()) return kDone;
  complain(why);
  return kNothingFits;
}

}  // namespace

Command estimate_command() {
  const auto arguments = std::make_shared<EstimateArguments>();
  Command command;
  command.groups = {
      {"Arguments", {plan_file_flag(arguments->path)}},
      {"Flags",
       {{.name = "--json", .value = "", .help = "print JSON", .set = into_switch(arguments->json)},
        {.name = "--trace",
         .value = "FILE",
         .help = "write a predicted timeline of every stage, for Perfetto; plait train "
                 "--trace has the same rows",
         .set = into_text(arguments->trace)}}}};
  FlagGroup& flags = command.groups.back();
  flags.flags.push_back(
      {.name = "--from",
       .value = "S",
       .help = "the file is a configuration of another program instead, which is read as a plan: "
               "megatron (a launch script), deepspeed (a ds_config.json, with --model), fsdp (a "
               "file of accelerate, with --model)",
       .set = into_choice(
           arguments->from,
           [](const std::string& text) -> std::optional<std::string> {
             const auto& forms = configuration_forms();
             if (text == "accelerate") return "fsdp";
             refuse_other_form(text);
             if (std::ranges::find(forms, text) == forms.end()) return std::nullopt;
             return text;
           },
           configuration_forms()),
       .choices = as_strings(configuration_forms())});
  for (Flag& flag : configured_flags(arguments->configured)) flags.flags.push_back(std::move(flag));
  flags.flags.push_back({.name = "--output",
                         .value = "FILE",
                         .help = "with --from: where to save the faster plan",
                         .set = into_text(arguments->output),
                         .letter = "-o"});
  for (Flag& flag : memory_and_price_flags(arguments->configured))
    flags.flags.push_back(std::move(flag));
  command.run = [arguments] { return estimate(*arguments); };
  return command;
}

}  // namespace plait
