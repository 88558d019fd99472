#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace plait {

// Wide-ResNet (Zagoruyko and Komodakis, arXiv 1605.07146) as in the experiments of Alpa (arXiv
// 2201.12023) and Aceso: bottleneck blocks whose 3x3 convolution has `width` times the usual
// output channels.
// {3,4,6,3} blocks, 320 channels, width 2 is the "1B" model.
struct WideResnetConfig {
  std::string name = "wide-resnet";
  std::vector<int> blocks = {3, 4, 6,
                             3};  // per stage; every stage after the first halves the image
  int channels = 64;              // of the first stage; doubled by every later one
  int width = 2;
  int classes = 1024;
  int image = 224;  // pixels on a side
  friend bool operator==(const WideResnetConfig&, const WideResnetConfig&) = default;
};

// "" or what is wrong.
std::string fault_of(const WideResnetConfig& config);

// Units: "stem", one per block ("stage1_first", "stage1", ...), "head".
//
// Tensor parallelism cuts a block by channels: conv1 by output, conv2 by input with a reduction,
// conv3 (and the down-sampling one) by output with a gathering. A gathering moves half as much as
// an all-reduce of the same tensor, so it counts as a reduction of half the elements.
Model build_wide_resnet(const WideResnetConfig& config);

}  // namespace plait
