#pragma once

#include "model/gan_config.h"
#include "model/model.h"

namespace plait {

// Units: "latent", blocks ("block_9x9", ...), one "upsample_18x18" before every later stage,
// "image".
Model build_transgan(const TransganConfig& config);

}  // namespace plait
