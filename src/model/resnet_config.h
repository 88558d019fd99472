#pragma once

#include <string>
#include <vector>

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

}  // namespace plait
