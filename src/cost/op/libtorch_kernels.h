#pragma once

#include "cost/op/fused_kernels.h"

namespace plait {

// Kernels of PyTorch as plait train launches them from C++ (docs/cost-model.md#libtorch): norms,
// activations and additions are one each, so that what the eager table measured of those holds here
// too; RMS norms are one kernel as well, and rotary embedding and gates are fewer.
class LibtorchKernels : public FusedKernels {
 public:
  using FusedKernels::FusedKernels;

  OpTime flash_attention(const Op& op, const Sharding& sharding) const override;
  bool launches_ahead() const override { return true; }
  Seconds layer_time(const UnitCost& device, const HostWork& host) const override;

 private:
  OpTime attention(const Op& op, const Sharding& sharding) const override;
  OpTime convolution(const Op& op, const Sharding& sharding) const override;
  OpTime memory_bound(const Op& op, const Sharding& sharding) const override;
  void add_around_product(const DeviceType& device, const Op& op, const Sharding& sharding,
                          const Product& product, OpTime& time) const override;
};

}  // namespace plait
