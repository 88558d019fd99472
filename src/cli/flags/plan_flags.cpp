#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <utility>

#include "base/error.h"
#include "cli/flags/magnitudes.h"
#include "cli/flags/plan_arguments.h"
#include "io/cluster/catalogue.h"
#include "io/model/zoo.h"
#include "plan/names.h"

namespace plait {
namespace {

constexpr int kMaxBatch = 1'000'000;
constexpr int kMaxThreads = 256;
constexpr int kMaxPlans = 1000;
constexpr int kMaxLayers = 100'000;
constexpr int kMaxHops = 100;

// Words that a cluster can be made of.
std::vector<std::string> node_names() {
  std::vector<std::string> names;
  for (const DeviceEntry& entry : builtin_catalogue().devices) names.push_back(entry.type.name);
  for (const Instance& instance : builtin_catalogue().instances) names.push_back(instance.name);
  return names;
}

std::vector<std::string> catalogue_names() {
  std::vector<std::string> names;
  for (const DeviceEntry& entry : builtin_catalogue().devices) names.push_back(entry.type.name);
  return names;
}

// Other programs' names for the values of a choice.
using Aliases = std::span<const std::pair<std::string_view, std::string_view>>;
constexpr std::pair<std::string_view, std::string_view> kPrecisions[] = {
    {"bfloat16", "bf16"},       {"bf16-mixed", "bf16"},
    {"float16", "fp16"},        {"half", "fp16"},
    {"fp16-mixed", "fp16"},     {"float32", "fp32"},
    {"bf16-true", "pure-bf16"}, {"nvfp4", "fp4"},
    {"mxfp8", "fp8-row"},       {"fp8-blockwise", "fp8-row"}};
constexpr std::pair<std::string_view, std::string_view> kOptimizers[] = {
    {"adamw", "adam"},
    {"fused-adam", "adam"},
    {"fusedadam", "adam"},
    {"adamw-torch", "adam"},
    {"adamw-torch-fused", "adam"},
    {"adamw8bit", "adam8bit"},
    {"adam-8bit", "adam8bit"},
    {"adamw-8bit", "adam8bit"},
    {"adamw-bnb-8bit", "adam8bit"},
    {"paged-adamw-8bit", "adam8bit"},
    {"paged-adamw-32bit", "adam"}};
constexpr std::pair<std::string_view, std::string_view> kAttentions[] = {
    {"flash-attention-2", "flash"},
    {"flash-attention-3", "flash"},
    {"sdpa", "flash"},
    {"fused", "flash"},
    {"eager", "plain"},
    {"unfused", "plain"}};

Setter aliased(Aliases aliases, Setter set) {
  return [aliases, set = std::move(set)](const std::string& flag, const std::string& text) {
    std::string plain = text;
    std::ranges::transform(plain, plain.begin(), [](unsigned char c) {
      return c == '_' ? '-' : static_cast<char>(std::tolower(c));
    });
    for (const auto& [alias, name] : aliases)
      if (alias == plain) return set(flag, std::string(name));
    set(flag, text);
  };
}

// Optimizers that people ask for, and the nearest that is predicted.
Setter into_optimizer(Optimizer& into) {
  constexpr std::pair<std::string_view, std::string_view> kNearest[] = {
      {"muon", "momentum has its states, without the products that make updates orthogonal"},
      {"lion", "momentum has its states, and takes its time"},
      {"adafactor", "sgd has about its states"},
      {"shampoo", "adam is nearest, which has less of both states and products"},
      {"soap", "adam is nearest, which has less of both states and products"},
      {"sophia", "adam has its states"}};
  return [set = aliased(kOptimizers, into_choice(into, optimizer_named, optimizer_names())),
          kNearest](const std::string& flag, const std::string& text) {
    for (const auto& [name, words] : kNearest)
      if (text == name)
        throw InputError(flag, fmt::format("'{}' is not predicted: {}", text, words));
    set(flag, text);
  };
}

// Metis' own arguments, which those of plait win over.
Flag metis_flag(PlanRequest& request) {
  return {.name = "--metis-args",
          .value = "FILE",
          .help =
              "a command line of Metis' program or script: model, hostfile, clusterfile, "
              "profile, batch and knobs are taken from it",
          .set =
              [&request](const std::string&, const std::string& path) {
                take_defaults(request.source, request.search, read_metis_arguments(path));
              },
          .early = true};
}

FlagGroup problem_flags(PlanRequest& request) {
  ProblemSource& a = request.source;
  Job& job = a.job;
  return {
      "What to train, and on what",
      {{.name = "--model",
        .value = "M",
        .help = "a name from plait models, a Hugging Face config.json, a plait model file, a file "
                "with Megatron-LM flags, or, with its --profile, Aceso's aceso:gpt_1_3B",
        .set = into_text(a.model),
        .choices = zoo_names(),
        .required = true,
        .unless = {"--metis-args"}},
       {.name = "--cluster",
        .value = "C",
        .help = "a shorthand (4xA100-80GB:8 is 4 nodes of 8, with /400Gbps behind it out of each; "
                "join kinds of node by +), a cluster file, or a hostfile",
        .set = into_text(a.cluster),
        .hidden = {"--hostfile-path"},
        .choices = node_names(),
        .required = true,
        .unless = {"--metis-args"}},
       {.name = "--global-batch",
        .value = "N",
        .help =
            "samples in one optimizer step, or tokens: 512, 4Mtokens; without it --micro-batch x "
            "--micro-batches x --dp",
        .set = into_batch(request, kMaxBatch),
        .hidden = {"--global-batch-size", "--gbs", "--batch-size", "--train-batch-size"},
        .units = magnitudes_and({"tokens", "token", "samples", "sequences"})},
       {.name = "--seq",
        .value = "N",
        .help = "tokens in a sequence: 4096, 128k (131,072); what the model was trained on by "
                "default",
        .set = into_tokens(a.sequence, 1, kMaxSequence),
        .hidden = {"--seq-length", "--sequence-length", "--seq-len", "--seqlen", "--max-seq-len",
                   "--max-seq-length", "--context-length", "--block-size"},
        .units = {"tokens", "token", "k", "K"}},
       {.name = "--layers",
        .value = "N",
        .help = "number of layers of a model that has one of Aceso's names: aceso:scale-layer",
        .set = into_integer(a.layers, 1, kMaxLayers)},
       {.name = "--precision",
        .value = "P",
        .help = fmt::format("{} (bf16, or fp16 where devices have no bf16)",
                            fmt::join(precision_names(), ", ")),
        .set = aliased(kPrecisions, into_choice(a.precision, precision_named, precision_names())),
        .hidden = {"--dtype", "--mixed-precision"},
        .choices = as_strings(precision_names())},
       {.name = "--optimizer",
        .value = "O",
        .help = fmt::format("{} (adam)", fmt::join(optimizer_names(), ", ")),
        .set = into_optimizer(job.optimizer),
        .hidden = {"--optim"},
        .choices = as_strings(optimizer_names())},
       {.name = "--attention",
        .value = "A",
        .help = "flash, or plain: scores written to memory (flash, or plain where devices are too "
                "old for it)",
        .set = aliased(kAttentions, into_choice(a.attention, attention_named, attention_names())),
        .hidden = {"--attn-implementation"},
        .choices = as_strings(attention_names())},
       {.name = "--framework",
        .value = "F",
        .help = fmt::format(
            "whose execution is predicted: {}, or a name of `plait frameworks` (megatron)",
            fmt::join(framework_names(builtin_catalogue()), ", ")),
        .set = into_text(a.framework),
        .choices = as_strings(framework_names(builtin_catalogue()))},
       {.name = "--runs-on",
        .value = "T",
        .help = fmt::format("the program that must be able to run the plan: {} (the framework's)",
                            fmt::join(target_names(), ", ")),
        .set = into_text(a.runs_on),
        .choices = as_strings(target_names())},
       {.name = "--no-overlap",
        .value = "",
        .help = "communication waits for compute, whatever the framework could overlap",
        .set = [&job](const std::string&, const std::string&) { job.overlap = false; }},
       {.name = "--granularity",
        .value = "G",
        .help = "where stages may be cut: between layers, or between ops (layer)",
        .set =
            [&a](const std::string& flag, const std::string& text) {
              static const std::vector<std::string_view> names{"layer", "op"};
              if (text != "layer" && text != "op") refuse_choice(flag, text, names);
              a.granularity = text == "op" ? Granularity::op : Granularity::layer;
            },
        .choices = {"layer", "op"}},
       {.name = "--clusterfile",
        .value = "FILE",
        .help = "Metis' JSON that describes the hosts of a hostfile",
        .set = into_text(a.clusterfile),
        .hidden = {"--clusterfile-path"}},
       {.name = "--device",
        .value = "TYPE",
        .help = "the device type of all hosts of a hostfile",
        .set = into_text(a.device),
        .choices = catalogue_names()},
       {.name = "--profile",
        .value = "PATH",
        .help = "measured times: h200, a profile file, or what Metis, Aceso, AMP or FASOP measured",
        .set = into_text(a.profile),
        .hidden = {"--profile-data-path"}},
       price_flag(a.prices),
       {.name = "--catalogue",
        .value = "FILE",
        .help = "devices and instances of your own",
        .set = [&a](const std::string&, const std::string& text) { a.catalogue.push_back(text); },
        .repeats = true},
       metis_flag(request)}};
}

FlagGroup search_flags(PlanRequest& a) {
  return {"How to search",
          {{.name = "--planner",
            .value = "NAME",
            .help = fmt::format("{} (auto)", fmt::join(planner_names(), ", ")),
            .set = into_text(a.planner),
            .choices = as_strings(planner_names())},
           {.name = "--cost-model",
            .value = "C",
            .help = "whose step time is to be the least: plait's, or metis or aceso for the "
                    "formulas of their programs on their profiles (plait; metis for its --format)",
            .set = into_one_of(a.cost_model, as_strings(cost_model_names())),
            .choices = as_strings(cost_model_names())},
           {.name = "--top",
            .value = "N",
            .help = "how many plans to show (5)",
            .set = into_integer(a.search.keep, 1, kMaxPlans)},
           {.name = "--effort",
            .value = "E",
            .help = fmt::format("{}: how much work the planner auto may spend; more never gives a "
                                "worse plan (normal)",
                                fmt::join(effort_names(), ", ")),
            .set = into_choice(a.search.effort, effort_named, effort_names()),
            .choices = as_strings(effort_names())},
           {.name = "--target-gap",
            .value = "G",
            .help = "stop as soon as no plan can be faster by more than this (2%); without "
                    "--effort, work until then",
            .set = into_gap(a.search.target_gap)},
           {.name = "--time-limit",
            .value = "T",
            .help = "stop after 10s, 500ms, 2m ... with the best so far (60s)",
            .set =
                [&a](const std::string& flag, const std::string& text) {
                  a.search.time_limit = Seconds(parse_seconds(flag, text));
                }},
           {.name = "--threads",
            .value = "N",
            .help = "the answer does not depend on it (all cores)",
            .set = into_integer(a.search.threads, 1, kMaxThreads)},
           {.name = "--explain-search",
            .value = "",
            .help = "also print what each pass of the search took and gave (auto)",
            .set = into_switch(a.explain_search)}}};
}

// Knobs of the planners that follow other people's papers, under the names they have there.
FlagGroup peer_flags(PlanRequest& a) {
  constexpr int kMaxPermuteLength = 12;
  return {
      "Knobs of the planners fasop, metis and aceso",
      {{.name = "--max-tp",
        .value = "N",
        .help = "fasop, metis: largest tensor degree (4)",
        .set = into_integer(a.search.max_tensor, 1, kMaxDegree),
        .hidden = {"--max-profiled-tp-degree"}},
       {.name = "--rotations",
        .value = "N",
        .help = "fasop: cyclic orders of the nodes that are tried; 0 is all (0)",
        .set = into_integer(a.search.rotations, 0, kMaxDegree)},
       {.name = "--max-permute-len",
        .value = "N",
        .help = "metis: device groups are fused until this many are left to permute (6)",
        .set = into_integer(a.search.max_permute_len, 1, kMaxPermuteLength)},
       {.name = "--group-scale-variance",
        .value = "X",
        .help = "metis: smallest device group over the mean group, 0 to 1; less tries more (1)",
        .set = into_fraction(a.search.group_scale_variance),
        .hidden = {"--min-group-scale-variance"}},
       {.name = "--max-micro-batch",
        .value = "N",
        .help =
            "metis: the most samples of a micro-batch on one replica; 0 means without limit (0)",
        .set = into_integer(a.search.max_micro_batch, 0, kMaxBatch),
        .hidden = {"--max-profiled-batch-size"}},
       {.name = "--max-num-hops",
        .value = "N",
        .help = "aceso: moves in a row before one must have helped (7)",
        .set = into_integer(a.search.max_hops, 1, kMaxHops)},
       {.name = "--start-num-stages",
        .value = "N",
        .help = "aceso: pipelines with at least this many stages (1)",
        .set = into_integer(a.search.first_stages, 1, kMaxDegree)},
       {.name = "--end-num-stages",
        .value = "N",
        .help = "aceso: pipelines with at most this many stages (16)",
        .set = into_integer(a.search.last_stages, 1, kMaxDegree)},
       {.name = "--initial-point",
        .value = "P",
        .help = "aceso: balance, or a configuration of Aceso's search to start from (balance)",
        .set = into_text(a.initial_point)}}};
}

// What may be used of each device, and what is to be as large as that allows.
FlagGroup size_flags(PlanArguments& arguments) {
  FlagGroup group{"Memory", memory_flags(arguments.request.source.memory)};
  const auto largest = [&](std::string name, std::string help, LargestOf of) {
    return Flag{.name = std::move(name),
                .value = "",
                .help = std::move(help),
                .set = [&arguments, of](const std::string& flag, const std::string&) {
                  if (arguments.largest)
                    throw InputError(flag, "ask for one largest size at a time");
                  arguments.largest = of;
                }};
  };
  group.flags.push_back(largest("--max-batch",
                                "find the largest global batch that fits at once (with one "
                                "micro-batch, or --micro-batches), instead of --global-batch",
                                LargestOf::batch));
  group.flags.push_back(largest(
      "--max-seq", "find the longest sequence that fits, instead of --seq", LargestOf::sequence));
  return group;
}

}  // namespace

std::vector<FlagGroup> plan_flags(PlanArguments& arguments) {
  PlanRequest& request = arguments.request;
  request.search.threads = usual_threads();
  return {problem_flags(request),
          tuning_flags(request.source),
          software_flags(request.source.job),
          size_flags(arguments),
          objective_flags(request.objective),
          search_flags(request),
          peer_flags(request),
          pin_flags(request),
          {"What to print",
           {{.name = "--json",
             .value = "",
             .help = "one JSON object on stdout, for scripts",
             .set = into_switch(arguments.json)},
            {.name = "--output",
             .value = "FILE",
             .help = "save the best plan, with all that it was made from; with --format aceso, the "
                     "folder for its configurations",
             .set = into_text(arguments.output),
             .letter = "-o"},
            {.name = "--log",
             .value = "FILE",
             .help = "what the search found, and when, as CSV: seconds, evaluations, step, bound",
             .set = into_text(arguments.log)},
            {.name = "--format",
             .value = "F",
             .help = fmt::format("plans in the words of another program instead: {}",
                                 fmt::join(format_names(), ", ")),
             .set = into_one_of(request.format, format_names()),
             .choices = format_names()}}},
          borrowed_flags(request)};
}

namespace {

std::vector<FlagGroup> filtered(std::vector<FlagGroup> groups,
                                const std::vector<std::string>& names, bool keep) {
  for (FlagGroup& group : groups)
    std::erase_if(group.flags, [&](const Flag& flag) {
      return (std::ranges::find(names, flag.name) != names.end()) != keep;
    });
  std::erase_if(groups, [](const FlagGroup& group) { return group.flags.empty(); });
  return groups;
}

}  // namespace

std::vector<FlagGroup> without_flags(std::vector<FlagGroup> groups,
                                     const std::vector<std::string>& names) {
  return filtered(std::move(groups), names, false);
}

std::vector<FlagGroup> only_flags(std::vector<FlagGroup> groups,
                                  const std::vector<std::string>& names) {
  return filtered(std::move(groups), names, true);
}

}  // namespace plait
