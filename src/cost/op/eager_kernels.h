#pragma once

#include "cost/op/kernels.h"

namespace plait {

struct Launches;

// Every primitive is a kernel of its own, as PyTorch runs it (docs/cost-model.md#eager); what they
// cost is in eager.h. The host launches kernel by kernel and runs ahead where it can.
class EagerKernels : public Kernels {
 public:
  using Kernels::Kernels;

  OpTime flash_attention(const Op& op, const Sharding& sharding) const override;
  bool writes_scores(const Op& op) const override { return op.writes_scores; }
  double kept_bytes(const Op& op) const override;
  // Masked models do not convert their logits to fp32, and where autocast does they keep no copy
  // (10 bytes instead of 12).
  double loss_share() const override;
  bool stops_recompute_early() const override { return true; }
  bool launches_ahead() const override { return true; }
  Seconds layer_time(const UnitCost& device, const HostWork& host) const override;

 private:
  OpTime attention(const Op& op, const Sharding& sharding) const override;
  OpTime memory_bound(const Op& op, const Sharding& sharding) const override;
  void add_around_product(const DeviceType& device, const Op& op, const Sharding& sharding,
                          const Product& product, OpTime& time) const override;
  OpTime score_attention(const Op& op, const Sharding& sharding) const;
  // Host time of a product or of attention.
  void launch(const Sharding& sharding, const Launches& launches, OpTime& time) const;
};

}  // namespace plait
