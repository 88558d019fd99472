#include <algorithm>

#include "cli/flags/profile_arguments.h"
#include "io/cluster/catalogue.h"
#include "io/model/zoo.h"
#include "plan/names.h"

namespace plait {
namespace {

constexpr int kMostMeasuredDegree = 1 << 16;
constexpr int kMostRanks = 256;

std::vector<Flag> what_flags(ProfileArguments& a) {
  return {{.name = "--model",
           .value = "M",
           .help = "measure the units and ops of this model, as plait plan takes it",
           .set = into_text(a.measure.model),
           .choices = zoo_names()},
          {.name = "--ops",
           .value = "FILE",
           .help = "measure a list of ops: {\"plait_ops\": 1, \"ops\": [...]}",
           .set = into_text(a.measure.ops)},
          {.name = "--comm",
           .value = "",
           .help = "measure collectives and messages between ranks",
           .set = into_switch(a.comm)},
          {.name = "--local",
           .value = "N",
           .help = "with --comm: start N ranks here; without it a launcher must have started them",
           .set = into_integer(a.local, 1, kMostRanks)},
          {.name = "--threads-per-rank",
           .value = "N,N..",
           .help = "with --local: threads and cores of each rank, or one number for all; on CPUs",
           .set = into_list(a.threads, 1, 4096)},
          {.name = "--sizes",
           .value = "LIST",
           .help = "with --comm: bytes of the tensors (default: 1 KiB to 64 MiB)",
           .set = into_list(a.sizes, 4, 1 << 30)},
          {.name = "--what",
           .value = "WHAT",
           .help = "with --model: all, units or ops (default: all)",
           .set = into_one_of(a.measure.what, {"all", "units", "ops"}),
           .choices = {"all", "units", "ops"}},
          {.name = "--granularity",
           .value = "WHAT",
           .help = "a unit is a layer or an op (default: layer)",
           .set = into_one_of(a.measure.granularity, {"layer", "op"}),
           .choices = {"layer", "op"}},
          {.name = "--tp",
           .value = "LIST",
           .help = "tensor degrees, whose shards are measured on one device: 1,2,4,8",
           .set = into_list(a.measure.tensors, 1, kMostMeasuredDegree)},
          {.name = "--micro-batch",
           .value = "LIST",
           .help = "samples of a micro-batch: 1,2,4,8",
           .set = into_list(a.measure.micro_batches, 1, kMostMeasuredDegree)},
          {.name = "--seq",
           .value = "LIST",
           .help = "tokens in a sample; the model's own by default",
           .set = into_list(a.measure.sequences, 1, kMaxSequence)}};
}

std::vector<Flag> how_flags(ProfileArguments& a) {
  return {
      {.name = "--device",
       .value = "D",
       .help = "cuda or cpu (default: cpu)",
       .set = into_one_of(a.measure.meter.device, {"cpu", "cuda"}),
       .choices = {"cpu", "cuda"}},
      {.name = "--device-type",
       .value = "NAME",
       .help = "what to call it; by default the catalogue's name of the device",
       .set = into_text(a.measure.meter.device_type)},
      {.name = "--precision",
       .value = "P",
       .help = "number format (default: bf16)",
       .set = into_choice(a.measure.meter.job.precision, precision_named, precision_names()),
       .choices = as_strings(precision_names())},
      {.name = "--optimizer",
       .value = "O",
       .help = "whose step is measured (default: adam)",
       .set = into_choice(a.measure.meter.job.optimizer, optimizer_named, optimizer_names()),
       .choices = as_strings(optimizer_names())},
      {.name = "--attention",
       .value = "A",
       .help = "flash or plain (default: flash)",
       .set = into_choice(a.measure.meter.job.attention, attention_named, attention_names()),
       .choices = as_strings(attention_names())},
      {.name = "--framework",
       .value = "F",
       .help = "whose padding of the vocabulary (default: megatron)",
       .set =
           [&a](const std::string& flag, const std::string& text) {
             a.measure.meter.job.framework = find_framework(builtin_catalogue(), text, flag);
           },
       .choices = as_strings(framework_names(builtin_catalogue()))},
      {.name = "--budget",
       .value = "TIME",
       .help = "stop after this long; the most informative points come first: 10m",
       .set =
           [&a](const std::string& flag, const std::string& text) {
             a.measure.budget = Seconds(parse_seconds(flag, text));
           }},
      {.name = "--per-point",
       .value = "TIME",
       .help = "repeat a pass for no longer than this, all rounds together (default: 400ms)",
       .set =
           [&a](const std::string& flag, const std::string& text) {
             a.measure.meter.longest = Seconds(parse_seconds(flag, text));
           }},
      {.name = "--settle",
       .value = "TIME",
       .help = "run a unit for this long before anything counts (default: 1s on GPUs)",
       .set =
           [&a](const std::string& flag, const std::string& text) {
             a.measure.meter.settle = Seconds(parse_seconds(flag, text));
           }},
      {.name = "--rounds",
       .value = "N",
       .help = "measure everything this many times, one round after the other (default: 3)",
       .set = into_integer(a.measure.rounds, 1, 100)},
      {.name = "--cache",
       .value = "FILE",
       .help = "where results are kept, point by point (default: in ~/.cache/plait)",
       .set = into_text(a.measure.cache)},
      {.name = "--fresh",
       .value = "",
       .help = "measure again what the cache knows",
       .set = into_switch(a.measure.fresh)},
      {.name = "--json", .value = "", .help = "with diff: print JSON", .set = into_switch(a.json)},
      {.name = "--format",
       .value = "F",
       .help = "native, or metis or aceso: files in the directory -o (default: native)",
       .set = into_one_of(a.measure.format, as_strings(profile_forms())),
       .choices = as_strings(profile_forms())},
      {.name = "--output",
       .value = "FILE",
       .help = "where to write the profile; stdout by default",
       .set = into_text(a.output),
       .letter = "-o"}};
}

}  // namespace

std::vector<FlagGroup> profile_flags(ProfileArguments& arguments) {
  arguments.measure.meter.job.framework = find_framework(builtin_catalogue(), "", "--framework");
  return {{"Arguments",
           {{.name = "ACTION",
             .value = "ACTION",
             .help = "with profile files: merge A B ..., diff A B or export A",
             .set = [&arguments](const std::string&,
                                 const std::string& text) { arguments.words.push_back(text); },
             .repeats = true}}},
          {"What to measure", what_flags(arguments)},
          {"How", how_flags(arguments)}};
}

}  // namespace plait
