#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cost/op/kernels.h"
#include "cost/op/near_shapes.h"
#include "cost/op/op_time.h"
#include "cost/op/source.h"
#include "profile/profile.h"

namespace plait {

// The op with the sizes that one device computes, as measurements are kept under; device_type is
// left empty. The kernel that is measured is the product, the flash attention or the convolution
// itself; what a framework puts around it stays analytic. Memory-bound ops have a key too, which
// says what the device computes; their times come from traffic (docs/cost-model.md#shapes).
OpKey op_key(const Job& job, const Model& model, const Op& op, const Sharding& sharding);

// Side of the kernel and stride of a convolution, from its sizes: the smallest odd side whose
// channels explain the input. Example: rows 56 x 56, inner 9 x 64 and an input of 56 x 56 x 64 is
// 3 x 3 with stride 1.
struct Window {
  int side = 1;
  int stride = 1;
};
Window window_of(const Op& op);

// What the analytic model says of the kernel of a product, a convolution or flash attention.
OpTime kernel_time(const Kernels& kernels, const OpKey& key);

// The measured ops of one device type.
class OpPoints {
 public:
  OpPoints(const Profile& profile, const std::string& device_type)
      : shapes_(profile, device_type) {}
  bool empty() const { return shapes_.empty(); }

  // Puts what was measured of the shape itself, or of those near it (near_shapes.h), in the place
  // of what the analytic model says of the op's kernel, in each pass that was measured.
  Source correct(const Kernels& kernels, const Op& op, const Sharding& sharding,
                 OpTime& time) const;

 private:
  NearShapes shapes_;
};

}  // namespace plait
