#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// Where a program may cut the chain of units into stages and chunks.
enum class CutRule {
  none,            // it has no pipeline
  equal_layers,    // the same number of layers in every chunk
  even_layers,     // numbers of layers that differ by one at most
  between_layers,  // anywhere between two layers
  between_ops,     // inside layers too
};

// How a tensor degree must go with the heads of keys and values.
enum class KeyValueHeads {
  any,      // they are repeated where they are too few
  divided,  // the degree divides their number
};

// Which layers of a stage may be recomputed in another way than the others.
enum class RecomputeLayers {
  same,   // none: all layers are alike
  first,  // the first n of every chunk in full and the others not at all, n the same everywhere
  any,    // each by itself
};

// Which ops may be cut in another way than the usual one.
enum class SplitChoices {
  none,
  queries_and_convolutions,  // products of queries, keys and values, and convolutions
  any,
};

// What a program can run. How fast it runs is a matter of the framework's traits; that is apart.
// The default is the free space: every plan that passes check_plan().
struct Target {
  std::string_view name = "any";
  std::string_view program = "any program";  // in sentences

  // Degrees.
  bool one_layout = false;  // one tensor and data degree for all stages and layers
  bool tensor = true;
  bool context = true;
  bool context_in_halves = false;    // a causal sequence is cut into twice as many parts
  bool context_needs_flash = false;  // attention that keeps its scores does not run over parts
  bool expert = true;
  bool experts_over_replicas = false;  // whole ones: the expert degree divides the data degree
  bool sequence_parallel = true;
  bool experts_need_sequence_parallel = false;  // beside a tensor degree
  bool tensor_across_nodes = true;
  KeyValueHeads key_value_heads = KeyValueHeads::any;
  SplitChoices split_choices = SplitChoices::any;

  // Pipeline.
  CutRule cuts = CutRule::between_ops;
  std::vector<Schedule> schedules{Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved,
                                  Schedule::zb_h1, Schedule::zb_2p,       Schedule::zb_v};

  // Memory.
  std::vector<ZeroStage> zero{ZeroStage::off, ZeroStage::optimizer, ZeroStage::gradients,
                              ZeroStage::parameters};  // without a pipeline
  std::vector<ZeroStage> zero_in_pipeline = zero;
  std::vector<Recompute> recomputes{Recompute::none, Recompute::selective, Recompute::full};
  bool recompute_by_stage = true;
  RecomputeLayers recompute_layers = RecomputeLayers::any;
  bool context_cuts_states = false;         // devices that share sequences never keep everything
  bool even_states = false;                 // what is cut is a multiple of the devices
  bool offload = true;                      // optimizer states in host memory
  ZeroStage offload_from = ZeroStage::off;  // the least that this goes with
  // The same where a part of them stays; nullopt = all or none.
  std::optional<ZeroStage> parts_from = ZeroStage::off;

  // Devices.
  bool unequal_shares = true;
  bool idle_in_node = true;       // devices of a node that others are used of; whole nodes may rest
  bool equal_nodes = false;       // equally many devices of every node that is used
  bool ranks_in_order = false;    // stages have consecutive ranks, nodes their devices in a row
  bool stages_of_powers = false;  // numbers of devices that are powers of two

  // Number formats and kernels.
  std::vector<Precision> precisions;  // empty = all
  bool needs_number_format = false;   // devices must have the one that is computed in
  bool flash_needs_bf16 = false;      // flash attention runs on generations that have bf16 only
  bool adapters = true;
  bool four_bit_weights = true;  // beside adapters

  friend bool operator==(const Target&, const Target&) = default;
};

// The one table of targets; its last row is `any`. To add a program: add a row.
std::span<const Target> targets();
std::vector<std::string_view> target_names();
// nullptr when there is none of that name.
const Target* target_named(std::string_view name);

// Whether the program runs the plan: nothing, or the first reason why it does not, as a sentence
// without its full stop ("Megatron-LM has one tensor degree for all stages, the plan has 4, 2").
// The plan must pass check_plan().
std::optional<std::string> why_not(const Target& target, const Problem& problem, const Plan& plan);

// The part of it that no plan can help: what the job asks for and the program does not have.
std::optional<std::string> why_not(const Target& target, const Job& job);
// Whether a device of this type can do what the job asks for, under the target's rules.
std::optional<std::string> why_not(const Target& target, const Job& job, const DeviceType& type);

// Whether it shares sequences among devices, with the job's attention.
bool has_context(const Target& target, const Job& job);

// Two libraries that sum over devices, of these of a cluster's types; "" = all have the same one.
std::string several_collectives(const Cluster& cluster, const std::vector<bool>& types);

// The ways in which the program cuts a unit (op_cuts.h).
int ways_to_cut(const Target& target, const LayerKind& unit);

// Heads of keys and values of all layers; 0 where there is no attention. The greatest common
// divisor when layers differ.
int key_value_heads(const Model& model);

// Layers of every chunk in pipeline order, embeddings and heads not counted.
std::vector<int> layers_by_chunk(const Model& model, const Plan& plan);

}  // namespace plait
