#pragma once

#include <string>
#include <vector>

namespace plait {

// The generator of TransGAN (Jiang et al., arXiv 2102.07074): transformer blocks on ever larger and
// thinner feature maps, so that layers differ greatly in cost and in what they hand on. The image
// doubles from stage to stage: by interpolation to the first two, at a quarter of the channels
// (pixel shuffle) to the later ones. AMP (NeurIPS'22) trains depths {12,0,0,0,0,12}, 1024 channels,
// bottom 9, window 18: images of 288 x 288.
struct TransganConfig {
  std::string name = "transgan";
  std::vector<int> depths = {12, 0, 0, 0, 0, 12};  // blocks per stage
  int channels = 1024;                             // of the first stage
  int bottom = 9;                                  // pixels on a side of the first stage
  int window = 18;  // attention within windows of this many pixels on a side
  int heads = 4;
  int latent = 512;
  friend bool operator==(const TransganConfig&, const TransganConfig&) = default;
};

// "" or what is wrong.
std::string fault_of(const TransganConfig& config);

}  // namespace plait
