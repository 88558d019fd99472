#pragma once

#include <memory>

#include "cost/framework/framework.h"
#include "cost/op/op_time.h"
#include "cost/op/replica.h"
#include "model/model.h"
#include "plan/problem.h"

namespace plait {

// Time that the host needs to launch the work of a layer.
struct HostWork {
  Seconds total;
  Seconds forward;          // of that; 0 where the passes are not told apart
  Seconds ahead;            // of the backward passes, launched before the device comes to them
  bool recomputed = false;  // forward is launched again in backward
};

// How a program runs the ops of a model on one device: what they take, what they keep, and how the
// host launches them. Three strategies (KernelStyle), chosen once by kernels_of(): fused kernels,
// eager ones, which run every primitive by itself, and libtorch's, in between. Refers to model and
// device.
class Kernels {
 public:
  Kernels(const Job& job, const Model& model, const DeviceType& device);
  virtual ~Kernels() = default;
  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  const Job& job() const { return job_; }
  const Model& model() const { return model_; }
  const DeviceType& device() const { return device_; }
  const FrameworkTraits& traits() const { return traits_; }

  // One op of one micro-batch, communication apart.
  OpTime time(const Op& op, const Sharding& sharding) const;

  // Scores, softmax and weighted sum in one kernel.
  virtual OpTime flash_attention(const Op& op, const Sharding& sharding) const = 0;
  // Whether attention writes its scores to memory although the job's kernels are flash.
  virtual bool writes_scores(const Op& op) const = 0;
  // Bytes that an op keeps for backward of one sample, before it is cut, masks and scores apart.
  virtual double kept_bytes(const Op& op) const = 0;
  // Traffic and memory of a logit in the loss, relative to the framework's constants.
  virtual double loss_share() const = 0;
  // Whether full recompute stops when it has the last tensor that backward needs.
  virtual bool stops_recompute_early() const = 0;
  // Whether the host goes on to launch backward passes while the device computes the output layer.
  virtual bool launches_ahead() const = 0;
  // How long a layer takes whose ops take the device so long.
  virtual Seconds layer_time(const UnitCost& device, const HostWork& host) const = 0;

 protected:
  bool is_autocast() const { return is_autocast_; }
  double element_bytes() const { return element_bytes_; }
  // Host time of a product or of attention.
  Seconds host_of_product(const Sharding& sharding) const;
  Seconds moving(double bytes) const;
  // Scores, softmax and weighted sum as the program's plain attention runs them.
  OpTime plain_attention(const Op& op, const Sharding& sharding) const;
  OpTime flash_kernel(const Op& op, const Sharding& sharding, double least_head) const;

 private:
  virtual OpTime attention(const Op& op, const Sharding& sharding) const = 0;
  virtual OpTime convolution(const Op& op, const Sharding& sharding) const;
  // A norm, an element-wise op or a reduction.
  virtual OpTime memory_bound(const Op& op, const Sharding& sharding) const = 0;
  // Adds what a product brings along that is not the output layer's. `device`: as product()'s.
  virtual void add_around_product(const DeviceType& device, const Op& op, const Sharding& sharding,
                                  const Product& product, OpTime& time) const = 0;

  // On this device, or on one like it with another bandwidth.
  OpTime product(const DeviceType& device, const Op& op, const Sharding& sharding) const;
  OpTime loss(const Op& op, const Sharding& sharding) const;
  OpTime embedding(const Op& op, const Sharding& sharding) const;
  Seconds dispatch_time(const Op& op, const Sharding& sharding) const;

  const Job job_;
  const Model& model_;
  const DeviceType& device_;
  const FrameworkTraits traits_;
  const bool is_autocast_;
  const double element_bytes_;
};

std::unique_ptr<const Kernels> kernels_of(const Job& job, const Model& model,
                                          const DeviceType& device);

// Time and memory of an op alone, for tests and tables.
OpTime op_time(const Job& job, const Model& model, const DeviceType& device, const Op& op,
               const Sharding& sharding);

}  // namespace plait
