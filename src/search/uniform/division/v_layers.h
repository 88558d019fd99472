#pragma once

#include <vector>

namespace plait {

// So many layers over the stages of a V that take so long for one each, as equally busy as can be,
// the first of those that are as good. Two at least, one for each chunk, but on the first stage,
// which has the ends of the model; empty where there are too few.
std::vector<int> layers_by_speed(int layers, const std::vector<double>& layer_times);

// The layers of every stage of a V in its two chunks, in execution order, where odd numbers are
// larger in the first chunk, and in the second.
std::vector<std::vector<int>> halves_of_stages(const std::vector<int>& layers);

}  // namespace plait
