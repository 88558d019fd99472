#include "cli/flags/other_words.h"

#include <algorithm>

namespace plait {
namespace {

struct OtherWord {
  std::vector<std::string_view> names;
  std::string_view instead;  // a flag that the verb must have
  std::string_view words;
};

bool has_flag(const std::vector<FlagGroup>& groups, std::string_view name) {
  return std::ranges::any_of(groups, [&](const FlagGroup& group) {
    return std::ranges::find(group.flags, name, &Flag::name) != group.flags.end();
  });
}

}  // namespace

std::string word_otherwise(const std::vector<FlagGroup>& groups, std::string_view word) {
  if (word.ends_with(".csv") && has_flag(groups, "--runs"))
    return ": measured runs stand behind --runs FILE";
  if (!has_flag(groups, "--model") || !has_flag(groups, "--cluster")) return "";
  if (word.ends_with(".json"))
    return ": saved plans are read by plait estimate, explain, check and diff; a model or a "
           "cluster stands behind its flag";
  return ": what it is stands before it, as in --model llama-2-7b --cluster 8xH100";
}

std::string said_otherwise(const std::vector<FlagGroup>& groups, std::string_view name) {
  static const OtherWord kOthers[] = {
      {{"--bandwidth", "--network", "--network-bandwidth", "--interconnect", "--inter-bandwidth",
        "--link", "--nic"},
       "--cluster",
       ": --cluster 4xA100-80GB:8/400Gbps says what each node sends; links between zones stand in "
       "a "
       "cluster file"},
      {{"--gpus", "--gpu", "--num-gpus", "--ngpus", "--nodes", "--nnodes", "--num-nodes",
        "--gpus-per-node", "--nproc-per-node", "--devices", "--world-size", "--gpu-type",
        "--device-type", "--accelerator"},
       "--cluster",
       ": --cluster 4xA100-80GB:8 says that there are 4 nodes of 8, and with a hostfile --device "
       "says of what"},
      {{"--cluster", "--clusters", "--hostfile"},
       "--instances",
       ": --instances H100:8:1-8 says what may be rented, 1 to 8 nodes of 8 here"},
      {{"--tp", "--pp", "--dp", "--cp", "--ep", "--global-batch", "--batch-size", "--zero"},
       "--from",
       ": plait plan --tp 2 --dp 4 prices what is pinned; here a file says it"},
      {{"--model", "--cluster", "--global-batch"},
       "--launcher",
       ": a plan is written; plait plan --model .. --cluster .. -o plan.json makes one"},
      {{"--slow", "--lost", "--lost-devices", "--add"},
       "--max-batch",
       ": plait plan -o plan.json keeps a plan, and plait replan plan.json changes its cluster"},
      {{"--lost-nodes", "--lost-node", "--failed", "--dead", "--remove", "--without"},
       "--lost-devices",
       ": --lost H100-3 takes a node out by its name, --lost-devices 5 a device by its id"},
      {{"--ulysses", "--ring-attention", "--sequence-parallel-size", "--context"},
       "--cp",
       ": --cp 4 cuts every sequence over 4 devices"},
      {{"--spot"},
       "--max-batch",
       ": --price p3.16xlarge=7.5 says what an hour costs; plait pareto has --spot"},
      {{"--load-in-4bit", "--quantization", "--quantize", "--nf4", "--bnb-4bit"},
       "--qlora",
       ": --qlora 16 trains adapters of rank 16 beside weights in 4 bits"},
      {{"--epochs", "--num-epochs", "--num-train-epochs", "--dataset", "--dataset-size",
        "--samples", "--train-samples"},
       "--tokens",
       ": --tokens 3B says how much is trained: the tokens of the data, times the epochs"},
      {{"--days", "--hours", "--weeks", "--max-days", "--max-time", "--duration", "--within"},
       "--deadline",
       ": --deadline 30d says how long the training may take"},
      {{"--offload-params", "--offload-param", "--offload-parameters", "--offload-weights"},
       "--offload",
       ": weights stay on the devices; --offload 1 keeps the optimizer's states in host memory, "
       "--zero 3 cuts the weights"},
      {{"--offload-activations", "--activation-offload", "--cpu-checkpointing"},
       "--recompute",
       ": activations stay on the devices; --recompute full keeps few of them"},
      {{"--gpu-memory-utilization", "--memory-fraction", "--memory-margin"},
       "--reserve",
       ": --reserve is the part of the memory that is kept free, --memory-limit what may be used"},
      {{"--inference", "--serve", "--serving", "--decode", "--kv-cache", "--max-tokens"},
       "--global-batch",
       ": plait plans training, not inference"},
      {{"--lr", "--learning-rate", "--weight-decay", "--warmup-steps", "--lora-alpha",
        "--lora-dropout"},
       "--global-batch",
       ": it changes neither time nor memory; leave it out"},
      {{"--fsdp"}, "--framework", ": --framework fsdp plans for PyTorch's FSDP"},
      {{"--ddp"}, "--framework", ": --framework ddp plans for replicas that keep everything"},
      {{"--vram", "--gpu-memory", "--gpu-mem", "--memory", "--max-memory"},
       "--memory-limit",
       ": --memory-limit 70GiB says what a plan may use of each device"},
      {{"--rank", "--peft-rank", "--adapter-rank"},
       "--lora",
       ": --lora 16 trains adapters of that rank"},
      {{"--zero-offload", "--optimizer-offload"},
       "--offload",
       ": --offload 1 keeps the optimizer's states in host memory"},
      {{"--deepspeed"}, "--framework", ": --framework deepspeed plans for DeepSpeed"},
      {{"--sharding", "--shard", "--sharding-strategy"},
       "--zero",
       ": --zero 3 cuts weights, gradients and optimizer state over the replicas, 2 and 1 less"},
      {{"--no-flash-attention", "--no-flash-attn", "--disable-flash-attn"},
       "--attention",
       ": --attention plain is without it"},
      {{"--energy", "--carbon", "--co2", "--power", "--watts", "--emissions"},
       "--global-batch",
       ": energy is not predicted; the devices' hours are, by --tokens and --price"},
      {{"--freeze-embeddings", "--freeze-embedding", "--freeze-layers", "--freeze-backbone",
        "--trainable-layers", "--unfreeze"},
       "--freeze",
       ": --freeze 24 leaves the embedding and the first 24 layers as they are"},
      {{"--zero3", "--zero2", "--zero1", "--zero-3", "--zero-2", "--zero-1"},
       "--zero",
       ": --zero 3 says the stage"},
      {{"--max-model", "--largest-model", "--max-model-size", "--max-params"},
       "--max-batch",
       ": sizes are searched for one model; name a model, and the answer says whether it fits and "
       "what would help"},
      {{"--compare", "--versus", "--baseline"},
       "--output",
       ": -o a.json saves an answer, and plait diff a.json b.json puts two side by side"},
      {{"--hostfile", "--hosts", "--machinefile", "--machine-file", "--nodefile"},
       "--cluster",
       ": --cluster hosts.txt --device H100 reads a hostfile"},
      {{"--cluster", "--gpus", "--num-gpus", "--nodes", "--nnodes"},
       "--lost-devices",
       ": --add 1xH100:8 and --lost NODE change the cluster that the plan was made for"},
      {{"--plan", "--file", "--input"},
       "--lost-devices",
       ": the plan stands without a flag: plait replan plan.json --lost-devices 5"},
      {{"-m", "-c", "-b", "-n", "-g"},
       "--cluster",
       ": flags are spelled out: --model, --cluster, --global-batch"},
      {{"--packing", "--sample-packing", "--pack", "--padding", "--pad-to-max-length"},
       "--global-batch",
       ": every sequence is planned as full, which packed ones are; what is padded takes the same "
       "time"},
      {{"--measured", "--measured-step", "--step-time", "--my-step", "--actual", "--observed",
        "--seconds-per-step"},
       "--global-batch",
       ": say with --framework, --tp, --pp, --zero, --micro-batch what you run, and compare your "
       "step with the one in the table; plait validate and calibrate read tables of measured runs"},
      {{"--exclude", "--without", "--remove", "--skip"},
       "--cluster",
       ": --cluster names what may be used; plait replan plan.json --lost takes nodes out of a "
       "plan"},
      {{"--power-limit", "--power-cap", "--tdp", "--clock", "--clock-limit"},
       "--cluster",
       ": speeds are those of the usual clocks; plait calibrate fits them to runs of yours"},
      {{"--dpo", "--ppo", "--grpo", "--rlhf"},
       "--global-batch",
       ": plait plans steps with one network and one loss; other networks beside it and the "
       "sampling of texts are not predicted"},
      {{"--gpus", "--num-gpus", "--nproc-per-node", "--nproc"},
       "--local",
       ": --local 8 starts 8 ranks on this machine"}};
  for (const OtherWord& other : kOthers)
    if (std::ranges::find(other.names, name) != other.names.end() &&
        has_flag(groups, other.instead))
      return std::string(other.words);
  return "";
}

}  // namespace plait
