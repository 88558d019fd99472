#pragma once

#include "runtime/train.h"

namespace plait::runtime {

// Backend::train.
int train_rank(const TrainRequest& request);

}  // namespace plait::runtime
