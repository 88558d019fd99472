#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/model.h"
#include "profile/profile.h"

namespace plait {

// Measurements of a whole model, entry by entry in execution order, as Metis, AMP and FASOP keep
// them: the entries have no names, only places.
struct LayerList {
  std::string where;  // the file, for messages
  std::string device_type;
  int tensor = 1;
  int micro_batch = 1;
  std::vector<ComputeSample> entries;
};

// How many entries belong to what comes before the first layer and after the last.
struct ListLayout {
  int before = 1;
  int after = 1;
};

struct MappedLists {
  Profile profile;
  std::vector<std::string> notes;  // what was assumed, one sentence each
};

// Gives the entries of each list to the kinds of the model's units. A kind is as costly as the mean
// of its units; several entries of one unit are added. With n entries and N units, the first rule
// that applies:
//   n = N                            one to one
//   one stack of L layers, n = L + before + after; or any n > before + after when the layers are
//                                    all of one kind and the entries between are alike (then n
//                                    tells how many were measured)
//   one stack of L layers, n = L     the layers only: the rest is left to the analytic model
//   two stacks, n = L1 + L2 + 2      embedding, L1, second embedding, L2 (no head)
//   otherwise                        the layers are the largest entries, if these come in runs as
//                                    long as the model's; what is between them goes to what is
//                                    between the model's runs, in equal parts
// InputError, with what was expected, when none does, or when two lists differ in length.
MappedLists map_lists(std::span<const LayerList> lists, const Model& model, ListLayout layout);

}  // namespace plait
