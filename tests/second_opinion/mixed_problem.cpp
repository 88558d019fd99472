#include "second_opinion/mixed_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>

#include "io/cluster/catalogue.h"
#include "io/cluster/load_cluster.h"
#include "io/model/load_model.h"

namespace plait::second_opinion {
namespace {

template <typename List>
const auto& any_of(std::mt19937_64& random, const List& list) {
  return list[random() % std::size(list)];
}

constexpr std::array kTypes{"T4",    "V100-16GB", "V100-32GB", "A10",       "L4",   "L40S", "A40",
                            "A6000", "RTX3090",   "A100-40GB", "A100-80GB", "H100", "H200"};
constexpr std::array kNetworks{10, 25, 50, 100, 200, 400};
constexpr std::array kModels{"gpt2-medium",  "gpt2-xl",          "bert-large",   "t5-large",
                             "gpt-neo-2.7b", "gpt-neox-20b",     "opt-6.7b",     "opt-13b",
                             "opt-66b",      "bloom-7.1b",       "falcon-7b",    "falcon-40b",
                             "llama-2-7b",   "llama-2-13b",      "llama-2-70b",  "llama-3-8b",
                             "mistral-7b",   "qwen2.5-14b",      "gemma-2-9b",   "olmoe-1b-7b",
                             "mixtral-8x7b", "deepseek-moe-16b", "qwen3-30b-a3b"};

std::string random_cluster(std::mt19937_64& random, int devices) {
  const int types = 1 + static_cast<int>(random() % 3);
  const bool one_network = random() % 2 == 0;
  const bool uneven = random() % 3 == 0;
  const int network = any_of(random, kNetworks);
  std::string text;
  int left = devices;
  for (int t = 0; t < types && left >= 2; ++t) {
    const int own = t + 1 == types ? left : left / (types - t);
    const char* type = any_of(random, kTypes);
    const int speed = one_network ? network : any_of(random, kNetworks);
    for (int rest = own; rest >= 2;) {
      const int size = std::min(rest, random() % 3 == 0 ? 4 : 8);
      const int nodes =
          uneven && rest > size ? 1 + static_cast<int>(random() % (rest / size)) : rest / size;
      text += fmt::format("{}{}x{}:{}/{}Gbps", text.empty() ? "" : "+", nodes, type,
                          uneven && random() % 3 == 0 && size > 2 ? size - 2 : size, speed);
      rest -= nodes * size;
    }
    left -= own;
  }
  return text;
}

double memory_of(const Cluster& cluster) {
  double sum = 0;
  for (const Device& device : cluster.devices)
    sum += cluster.device_types[device.type].memory.value;
  return sum;
}

}  // namespace

MixedProblem mixed_problem(std::uint64_t seed, int most_devices, Sequences sequences) {
  std::mt19937_64 random(seed);
  MixedProblem out;
  Problem& problem = out.problem;
  std::array sizes{16, 24, 32, 48, 64, 96, 128, 256};
  const auto fitting = std::ranges::count_if(sizes, [&](int size) { return size <= most_devices; });
  const std::string cluster = random_cluster(random, sizes[random() % std::max<long>(1, fitting)]);
  problem.cluster = load_cluster(cluster).cluster;
  std::string model;
  // Weights, gradients and optimizer state take 18 bytes a parameter; some room is left.
  do {
    model = any_of(random, kModels);
    problem.model = load_model(model, std::nullopt).model;
  } while (1.4 * 18 * problem.model.parameters() > memory_of(problem.cluster));
  std::string length;
  if (sequences == Sequences::up_to_64k && random() % 2 == 0) {
    out.sequence = 8192 << random() % 4;
    problem.model = load_model(model, out.sequence).model;
    length = fmt::format(" --seq {}", *out.sequence);
  }
  int batch = 32 << random() % 4;
  if (random() % 4 == 0) batch = batch * 3 / 2;
  problem.job.global_batch = batch;
  problem.job.precision = Precision::fp16;
  problem.job.framework = find_framework(builtin_catalogue(), "", "framework");
  out.model = model;
  out.cluster = cluster;
  out.arguments = fmt::format("--model {}{} --cluster {} --global-batch {} --precision fp16", model,
                              length, cluster, batch);
  return out;
}

}  // namespace plait::second_opinion
