#include "cli/flags/field_flags.h"

#include <algorithm>
#include <utility>

namespace plait {
namespace {

constexpr std::pair<std::string_view, std::string_view> kFlags[] = {
    {"tensor", "--tp"},
    {"pipeline", "--pp"},
    {"data", "--dp"},
    {"context", "--cp"},
    {"expert", "--ep"},
    {"micro_batch", "--micro-batch"},
    {"micro_batches", "--micro-batches"},
    {"recompute", "--recompute"},
    {"recompute_layers", "--recompute-layers"},
    {"zero", "--zero"},
    {"keep_shardings", "--keep-shardings"},
    {"schedule", "--schedule"},
    {"chunks", "--chunks"},
    {"sequence_parallel", "--sp"},
    {"no_sequence_parallel", "--no-sp"},
    {"stages", "--stages"},
    {"offload", "--offload"},
    {"memory_limit", "--memory-limit"},
    {"reserve", "--reserve"},
    {"lora", "--lora"},
    {"qlora", "--qlora"},
    {"freeze", "--freeze"},
    {"price", "--price"},
    {"goodput", "--goodput"},
    {"max_batch", "--max-batch"},
    {"max_seq", "--max-seq"},
    {"global_batch", "--global-batch"},
    {"num_layers_per_virtual_pipeline_stage", "--num-layers-per-virtual-pipeline-stage"},
    {"sequence", "--seq"},
    {"precision", "--precision"},
    {"model", "--model"},
    {"attention", "--attention"},
    {"runs_on", "--runs-on"},
    {"runs", "--runs"},
    {"free_layout", "--free-layout"},
    {"cluster", "--cluster"},
    {"clusterfile", "--clusterfile"},
    {"cache", "--cache"},
    {"profile", "--profile"},
    {"catalogue", "--catalogue"},
    {"framework", "--framework"},
    {"planner", "--planner"},
    {"keep", "--top"},
    {"time_limit", "--time-limit"},
    {"effort", "--effort"},
    {"target_gap", "--target-gap"},
    {"cost_model", "--cost-model"},
    {"layers", "--layers"},
    {"initial_point", "--initial-point"},
    {"format", "--format"},
    {"objective", "--objective"},
    {"deadline", "--deadline"},
    {"budget", "--budget"},
    {"tokens", "--tokens"},
    {"steps", "--steps"},
    {"instances", "--instances"},
    {"spot", "--spot"},
    {"lost", "--lost"},
    {"lost_devices", "--lost-devices"},
    {"slow", "--slow"},
    {"add", "--add"},
    {"database", "--database"},
    {"trace", "--trace"},
    {"output", "--output"},
    {"to", "--to"},
    {"from", "--from"},
    {"nearest", "--nearest"},
    {"force", "--force"},
    {"vocabulary", "--vocabulary"},
    {"tokenizer", "--tokenizer"},
    {"device", "--device"},
    {"comm", "--comm"},
    {"mesh", "--mesh"},
    {"blocks", "--blocks"},
    {"plan", "--plan"},
    {"ops", "--ops"},
    {"granularity", "--granularity"},
    {"what", "--what"},
    {"launch", "--launch"},
    {"train", "--train"},
    {"plans", "--plans"},
    {"folder", "--dir"},
    {"time_pattern", "--time-pattern"},
    {"memory_pattern", "--memory-pattern"},
    {"learning_rate", "--lr"},
    {"local", "--local"},
    {"threads_per_rank", "--threads-per-rank"},
    {"max_restarts", "--max-restarts"},
    {"device_lost", "--device-lost"},
    {"checkpoint", "--checkpoint"},
    {"checkpoint_every", "--checkpoint-every"},
};

}  // namespace

std::string_view flag_of(std::string_view field) {
  const auto* found = std::ranges::find(kFlags, field, [](const auto& row) { return row.first; });
  return found == std::end(kFlags) ? std::string_view() : found->second;
}

std::string in_flags(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t begin = text.find('`');
    const std::size_t end = begin == text.npos ? text.npos : text.find('`', begin + 1);
    if (end == text.npos) return out.append(text);
    const std::string_view flag = flag_of(text.substr(begin + 1, end - begin - 1));
    out.append(text.substr(0, begin));
    // What is not a field keeps its first quote; its second may begin a field.
    out.append(flag.empty() ? text.substr(begin, end - begin) : flag);
    text.remove_prefix(flag.empty() ? end : end + 1);
  }
  return out;
}

}  // namespace plait
