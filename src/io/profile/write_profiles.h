#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/problem.h"
#include "profile/profile.h"

namespace plait {

// Files by name, for other systems' tools. What they need and a profile does not have is made from
// it; docs/profiler.md#formats says how.
using TextFiles = std::map<std::string, std::string>;

// Points at which every unit of the model was measured.
struct WholePoint {
  std::string device_type;
  int tensor = 1;
  int micro_batch = 1;
  std::vector<const ComputeSample*> units;  // in execution order
};
std::vector<WholePoint> whole_points(const Profile& profile, const Model& model);

// Metis: DeviceType.H200_tp1_bs1.json for every point, an entry for each unit. Times of a tensor
// group have its collectives inside where the profile has their curves. InputError when no point is
// whole.
TextFiles metis_files(const Profile& profile, const Model& model, const Job& job);

// Aceso: gpt_NAME_mbs1_tp1_algo0.csv for every point, prim_gpt_NAME_all_reduce_2gpus.csv for every
// curve and p2p_intra_node.csv. A layer's times are divided over Aceso's ops as the analytic model
// divides them. GPT only; InputError for other models.
TextFiles aceso_files(const Profile& profile, const Model& model, const Job& job);

// Writes them into a directory, which is made when it is not there.
void write_files(const TextFiles& files, const std::string& directory);

}  // namespace plait
