#pragma once

#include "cost/op/kernels.h"

namespace plait {

// Kernels that read and write each tensor once, `FrameworkTraits::traffic` times as much where a
// program fuses less; the host launches a layer beside the device.
class FusedKernels : public Kernels {
 public:
  using Kernels::Kernels;

  OpTime flash_attention(const Op& op, const Sharding& sharding) const override;
  bool writes_scores(const Op&) const override { return false; }
  double kept_bytes(const Op& op) const override;
  double loss_share() const override { return 1; }
  bool stops_recompute_early() const override { return false; }
  bool launches_ahead() const override { return false; }
  Seconds layer_time(const UnitCost& device, const HostWork& host) const override;

 private:
  OpTime attention(const Op& op, const Sharding& sharding) const override;
  OpTime memory_bound(const Op& op, const Sharding& sharding) const override;
  void add_around_product(const DeviceType&, const Op&, const Sharding&, const Product&,
                          OpTime&) const override {}
  double between_kernels(const Op& op) const;
};

// A kernel that moves what the op moves. Backward reads the output's gradient and what was saved,
// and writes the input's gradient. A norm's is added to the gradient that comes along the residual
// stream.
OpTime fused_memory_time(const Kernels& kernels, const Op& op, const Sharding& sharding);

}  // namespace plait
