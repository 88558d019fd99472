#pragma once

#include <set>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cost/aceso_table.h"
#include "io/profile/profile_path.h"
#include "profile/profile.h"

namespace plait {

// Names of the models whose ops are there: "gpt_1_3B" of gpt_1_3B_mbs1_tp2_algo0.csv.
std::set<std::string> aceso_tables_in(const ProfilePath& files);

// Ops named in `files`, which must be of one model: InputError lists the models otherwise, and says
// which `wanted` one is missing. Where an op fits at some of its points, rows with the 10,000,000
// that stands for "did not fit" are marked; where it fits at none, they are errors.
AcesoTable read_aceso_ops(const ProfilePath& files, const std::string& wanted = "");

// The same with the curves of the model's prim_*_Ngpus.csv and of p2p_*_node.csv as they are, for
// AcesoFormula. A model without collectives of its own has none.
AcesoTable read_aceso_tables(const ProfilePath& files, const std::string& wanted);

// The curves of prim_*_Ngpus.csv (of all models: the machine is the same) and of p2p_*_node.csv.
void read_aceso_links(const ProfilePath& files, const std::string& device_type, Profile& profile);

// Ops of a model in execution order: 13 L + 3 for gpt, 34 L + 5 for t5 (L encoder and L decoder
// layers), 8 for each block and 6 for resnet. `layers` has one number, for resnet one a stage.
std::vector<std::string> aceso_op_list(const std::string& family, const std::vector<int>& layers);

// True for the first op of a layer: recompute starts anew there.
bool starts_aceso_layer(const std::string& op);

// What the file says of an op, seen between its neighbours (nullptr at the ends of the model). The
// database counts what memory has grown by, which is not what stays:
//   saved      what only this op keeps (dropout masks, statistics, logits); its input when its
//              backward needs it (products, convolutions, norms, gelu); its output when its
//              backward needs that (softmax, relu) and the next op does not keep it as its input
//   input      the output of the op before, unless that op keeps it anyway
//   workspace  the gradients of its output and input; for convolutions, whose products need large
//              buffers of many sizes, what the allocator's pool has grown by, if that is more
// Added to the backward pass, as the profiler does not run it: three passes over the gradients to
// accumulate them and, at the end of a residual branch, over the sum of its gradients.
ComputeSample aceso_sample(const std::string& name, const AcesoOp& op, const AcesoOp* before,
                           const std::string& before_name, const std::string& after_name,
                           BytesPerSecond memory_rate);

// The samples of every op of the list at every point, under the ops' own names.
void add_aceso_ops(const AcesoTable& table, const std::vector<std::string>& ops,
                   const DeviceType& device, Profile& profile);

}  // namespace plait
