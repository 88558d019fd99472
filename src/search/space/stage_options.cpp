#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "cost/known_times.h"
#include "search/space/space.h"

// Which stages a plan of the space may be made of.
namespace plait {
namespace {

// Up to this many devices all ways to mix pools in one stage are tried; beyond it only those that
// take whole pools or, of two, a half or a quarter too.
constexpr int kSmallCluster = kExactDevices;
// Pools beyond this are not mixed in one stage: a limit of work, 2^6 subsets.
constexpr int kMaxMixedPools = 6;
// On more devices than kExactDevices a stage has at least this part of what it would have if every
// unit were a stage, or a quarter of its pool.
constexpr double kLeastShare = 0.5;
// A pool may be cut evenly into this many stages even if the micro-batch is not divisible.
constexpr int kEvenCuts = 4;

// Samples for each pool so that the longest time, by the given speeds, is least: shares of whole
// samples, the fewest that hold the micro-batch. Empty when a replica would get none.
std::vector<int> balanced(const std::vector<int>& replicas, const std::vector<double>& speeds,
                          int micro_batch) {
  // More than the micro-batch is never needed, and of speeds far apart more than an int can hold.
  const auto share = [&](double load, std::size_t i) {
    return static_cast<int>(
        std::min(1.0 * micro_batch, std::floor(load * speeds[i] * (1 + 1e-12))));
  };
  const auto held = [&](double load) {
    long sum = 0;
    for (std::size_t i = 0; i < replicas.size(); ++i)
      sum += static_cast<long>(share(load, i)) * replicas[i];
    return sum;
  };
  // The least load is one at which some pool's share steps up to a whole number.
  double best = HUGE_VAL;
  for (const double speed : speeds) {
    int low = 1;
    int high = micro_batch;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (held(middle / speed) >= micro_batch)
        high = middle;
      else
        low = middle + 1;
    }
    if (held(low / speed) >= micro_batch) best = std::min(best, low / speed);
  }
  if (best == HUGE_VAL) return {};
  std::vector<int> samples;
  for (std::size_t i = 0; i < replicas.size(); ++i) samples.push_back(share(best, i) * replicas[i]);
  // Take back what is too much, from the pools that are loaded most.
  for (long surplus = held(best) - micro_batch; surplus > 0;) {
    std::size_t most = 0;
    for (std::size_t i = 1; i < replicas.size(); ++i)
      if (samples[i] / (replicas[i] * speeds[i]) > samples[most] / (replicas[most] * speeds[most]))
        most = i;
    const int back = static_cast<int>(std::min<long>(surplus, replicas[most]));
    samples[most] -= back;
    surplus -= back;
  }
  for (std::size_t i = 0; i < replicas.size(); ++i)
    if (samples[i] < replicas[i]) return {};
  return samples;
}

// Stages over several pools: every number of replicas of each, samples by speed.
class MixedOptions {
 public:
  MixedOptions(const Space& space, int micro_batch, std::set<StageOption>& options)
      : space_(space), micro_batch_(micro_batch), options_(options) {}

  void add(const std::vector<int>& pools, int tensor) {
    pools_ = pools;
    tensor_ = tensor;
    replicas_.assign(pools.size(), 0);
    choose_replicas(0);
  }

 private:
  const DeviceType& type(std::size_t i) const {
    return space_.problem().cluster.device_types[space_.pools()[pools_[i]].type];
  }

  void choose_replicas(std::size_t at) {
    if (at == pools_.size()) return choose_samples();
    const int most = space_.pools()[pools_[at]].size() / tensor_;
    const bool small = space_.problem().cluster.device_count() <= kSmallCluster;
    for (int n = most; n >= 1; n = small ? n - 1 : n / 2) {
      const bool few_pools = space_.pools().size() <= 2;
      if (!small && n * (few_pools ? 4 : 1) < most) break;
      replicas_[at] = n;
      choose_replicas(at + 1);
    }
  }

  // By the rate of matrix products, and by that of memory.
  void choose_samples() {
    const int data = std::accumulate(replicas_.begin(), replicas_.end(), 0);
    const Pins& pins = space_.pins();
    if (data > micro_batch_ || (pins.data && *pins.data != data)) return;
    if (pins.micro_batch && *pins.micro_batch * data != micro_batch_) return;
    std::vector<double> by_compute;
    std::vector<double> by_memory;
    for (std::size_t i = 0; i < pools_.size(); ++i) {
      by_compute.push_back(type(i).peak_of(DType::fp16).value * type(i).efficiency.matmul);
      by_memory.push_back(type(i).memory_bandwidth.value);
    }
    const std::vector<double> evenly(pools_.size(), 1.0);
    if (pins.micro_batch) return add_option(data, balanced(replicas_, evenly, micro_batch_));
    add_option(data, balanced(replicas_, by_compute, micro_batch_));
    add_option(data, balanced(replicas_, by_memory, micro_batch_));
  }

  void add_option(int data, const std::vector<int>& samples) {
    if (samples.empty()) return;
    StageOption option{tensor_, data, {}};
    for (std::size_t i = 0; i < pools_.size(); ++i)
      option.takes.push_back({pools_[i], replicas_[i] * tensor_, samples[i]});
    options_.insert(option);
  }

  const Space& space_;
  int micro_batch_;
  std::set<StageOption>& options_;
  std::vector<int> pools_;
  int tensor_ = 1;
  std::vector<int> replicas_;
};

// Fewest devices of a pool that are worth a stage.
int least_devices(const Space& space, int pool) {
  const int all = space.problem().cluster.device_count();
  if (all <= kExactDevices) return 1;
  const double even = static_cast<double>(all) / space.problem().model.unit_count();
  return std::min(static_cast<int>(std::ceil(kLeastShare * even)),
                  (space.pools()[pool].size() + 3) / 4);
}

void add_single_options(const Space& space, const PlanSettings& settings,
                        std::set<StageOption>& options) {
  const Pins& pins = space.pins();
  const int micro_batch = space.problem().job.global_batch / settings.micro_batches;
  for (int p = 0; p < static_cast<int>(space.pools().size()); ++p) {
    const int size = space.pools()[p].size();
    for (const int t : space.tensor_degrees(space.pools()[p])) {
      if (!space.cuts_sequence(settings, t)) continue;
      const int most = std::min(micro_batch, size / (t * settings.context));
      std::set<int> degrees;
      for (const int d : divisors_of(micro_batch))
        if (d <= most) degrees.insert(d);
      for (int cut = 1; cut <= kEvenCuts; ++cut)
        if (size / (t * settings.context) / cut <= most)
          degrees.insert(size / (t * settings.context) / cut);
      degrees.erase(0);
      for (const int d : degrees) {
        if (d * t * settings.context < least_devices(space, p)) continue;
        if (pins.data && *pins.data != d) continue;
        if (pins.micro_batch && *pins.micro_batch * d != micro_batch) continue;
        if (d * settings.context % settings.expert != 0) continue;
        options.insert({t, d, {{p, d * t * settings.context, micro_batch}}});
      }
    }
  }
}

void add_mixed_options(const Space& space, const PlanSettings& settings,
                       std::set<StageOption>& options) {
  const int count = static_cast<int>(space.pools().size());
  if (count < 2 || count > kMaxMixedPools || settings.context > 1 || settings.expert > 1) return;
  const int micro_batch = space.problem().job.global_batch / settings.micro_batches;
  std::vector<std::vector<int>> degrees;
  for (const Pool& pool : space.pools()) degrees.push_back(space.tensor_degrees(pool));
  MixedOptions mixed(space, micro_batch, options);
  for (unsigned set = 1; set < (1U << count); ++set) {
    std::vector<int> chosen;
    for (int p = 0; p < count; ++p)
      if ((set >> p & 1U) != 0) chosen.push_back(p);
    if (chosen.size() < 2) continue;
    for (const int t : degrees[chosen.front()]) {
      if (!space.cuts_sequence(settings, t)) continue;
      const bool everywhere = std::ranges::all_of(
          chosen, [&](int p) { return std::ranges::find(degrees[p], t) != degrees[p].end(); });
      if (everywhere) mixed.add(chosen, t);
    }
  }
}

bool has_unequal_shares(const StageOption& option) {
  const int samples = option.takes.front().samples / option.data_of(option.takes.front());
  return std::ranges::any_of(option.takes, [&](const Take& take) {
    return take.samples != samples * option.data_of(take);
  });
}

bool may_run(const Target& target, const Model& model, int tensor) {
  if (tensor > 1 && !target.tensor) return false;
  return target.key_value_heads == KeyValueHeads::any || key_value_heads(model) % tensor == 0;
}

}  // namespace

int StageOption::devices() const {
  int sum = 0;
  for (const Take& take : takes) sum += take.devices;
  return sum;
}

std::vector<int> Space::tensor_degrees(const Pool& pool) const {
  std::vector<int> degrees;
  for (int t = 1; t <= std::min(pool.size(), kMaxTensorNodes * pool.per_node); ++t) {
    if (!tensor_fits(pool, t)) continue;
    if (pins_.tensor && *pins_.tensor != t) continue;
    if (cuts_evenly(problem_.model, t) && may_run(target_, problem_.model, t)) degrees.push_back(t);
  }
  // A degree of several nodes that does not divide the sequence would keep all others from cutting
  // it: 24 of 2,048 tokens.
  const auto cuts_sequence = [&](int t) { return problem_.model.sequence_length % t == 0; };
  const auto inside_node = [&](int t) { return t <= pool.per_node; };
  const std::string& type = problem_.cluster.device_types[pool.type].name;
  if (const auto measured = measured_degrees(problem_, type))
    std::erase_if(degrees, [&](int t) { return !inside_node(t) || !measured->contains(t); });
  if (!pins_.tensor && pins_.sequence_parallel.value_or(true) &&
      std::ranges::all_of(degrees, [&](int t) { return !inside_node(t) || cuts_sequence(t); }))
    std::erase_if(degrees, [&](int t) { return !cuts_sequence(t); });
  return degrees;
}

std::vector<StageOption> Space::stage_options(const PlanSettings& settings) const {
  std::set<StageOption> options;
  add_single_options(*this, settings, options);
  add_mixed_options(*this, settings, options);
  std::erase_if(options, [&](const StageOption& option) {
    const auto devices = static_cast<unsigned>(option.devices());
    return (!target_.unequal_shares && has_unequal_shares(option)) ||
           (target_.stages_of_powers && !std::has_single_bit(devices));
  });
  return {options.begin(), options.end()};
}

}  // namespace plait
