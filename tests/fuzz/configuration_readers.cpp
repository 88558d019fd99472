#include "fuzz/configuration_readers.h"

#include "fuzz/oracles.h"
#include "io/cluster/catalogue.h"
#include "io/cluster/cluster_shorthand.h"
#include "io/model/megatron_flags.h"
#include "io/model/megatron_launch.h"
#include "io/model/megatron_layout.h"
#include "io/plan/accelerate_config.h"
#include "io/plan/deepspeed_config.h"
#include "io/plan/megatron_plan.h"
#include "io/plan/metis_arguments.h"
#include "model/transformer.h"

namespace plait::fuzz {
namespace {

Problem on_four(const TransformerConfig& config) {
  Problem problem;
  problem.model = build_transformer(config);
  problem.cluster = read_cluster_shorthand("1xT4:4", builtin_catalogue()).cluster;
  problem.job.framework = find_framework(builtin_catalogue(), "", "framework");
  return problem;
}

void check_configured(const ConfiguredPlan& configured, Problem problem) {
  problem.job.global_batch = configured.global_batch;
  check_price(problem, configured.plan);
}

}  // namespace

void read_metis_command(const std::string& bytes) {
  file_of("hostfile", "10.0.0.1 8\n");
  file_of("clusterfile.json", "{}");
  file_of("profile", "");
  read_metis_arguments(file_of("run.sh", bytes));
}

void read_layout(const std::string& bytes) {
  const std::vector<LayoutStage> stages = parse_layout("file", bytes);
  const std::string written = layout_text(stages);
  promise(again([&] { return parse_layout("file", written); }) == stages,
          "a layout that is written reads as another one");
}

void read_deepspeed(const std::string& bytes) {
  const DeepspeedConfig config = read_deepspeed_config("file", bytes);
  const Problem problem = on_four({.vocabulary = 64, .layers = 4, .hidden = 16, .heads = 2});
  check_configured(deepspeed_plan("file", config, problem), problem);
}

void read_accelerate(const std::string& bytes) {
  DeepspeedFilled told;
  told.sizes.micro_batch = 2;
  const AccelerateConfig config = read_accelerate_config("file", bytes, told);
  const Problem problem = on_four({.vocabulary = 64, .layers = 4, .hidden = 16, .heads = 2});
  check_configured(deepspeed_plan("file", config.layout, problem), problem);
}

// A launch script of Megatron-LM as a plan, as `import --from megatron` takes it.
void read_launch(const std::string& bytes) {
  constexpr int kMostLayers = 400;
  refuse_two_values("launch.sh", bytes);
  const auto launch = read_megatron_launch("launch.sh", bytes);
  if (!launch || !launch->pins.micro_batch)
    throw InputError("launch.sh", "says nothing of a layout");
  const TransformerConfig config = read_megatron_flags("launch.sh", bytes, std::nullopt).config;
  if (config.layers > kMostLayers) return;
  const Problem problem = on_four(config);
  check_configured(megatron_plan("launch.sh", *launch, problem), problem);
}

}  // namespace plait::fuzz
