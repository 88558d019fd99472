#pragma once

#include <string>

#include "model/resnet_config.h"
#include "runtime/lower/program_writer.h"

namespace plait::runtime {

// Lowers the layers of a Wide-ResNet. The names of ops are those of model/resnet.cpp; kernels,
// strides, sides and channels follow from the configuration.
//
// Tensor parallelism cuts conv1 of a bottleneck by output; conv2 is cut by input, and its partial
// sums are added; conv3 and the convolution past the block are cut by output and gathered.
class ResnetLowering : public ProgramWriter {
 public:
  // `config` must outlive it.
  ResnetLowering(const WideResnetConfig& config, ExecProgram& program);

 private:
  struct Convolution {
    std::int64_t in = 0, out = 0;  // channels
    std::int64_t kernel = 1, stride = 1;
    int cut = -1;  // dimension of the weight: 0 by output, 1 by input
  };

  void begin_layer(const LayerNames& layer) override;
  std::string write_op(ExecOp& exec) override;

  void stem(ExecOp& exec);
  void convolution(ExecOp& exec);
  void skip(ExecOp& exec);
  void set_convolution(ExecOp& exec, const Convolution& shape, std::int64_t side);
  void batch_norm(ExecOp& exec, std::int64_t channels, bool cut);
  void fully_connected(ExecOp& exec);

  const WideResnetConfig& config_;
  // Of the layer, which is a bottleneck: its channels inside, after the wide convolution and at the
  // end, and the stride of the wide convolution.
  std::int64_t inner_ = 0, wide_ = 0, output_ = 0;
  std::int64_t stride_ = 1;
  int stage_ = -1;  // -1: the stem
  int block_ = 0;   // of the stage
};

}  // namespace plait::runtime
