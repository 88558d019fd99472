#include "runtime/backend.h"

#include <torch/torch.h>

#include "runtime/profile.h"
#include "runtime/torch/profile_backend.h"
#include "runtime/torch/train_rank.h"

namespace plait::runtime {
namespace {

std::string torch_build() {
  return std::string("libtorch ") + TORCH_VERSION +
         (torch::cuda::is_available() ? ", CUDA" : ", CPU");
}

}  // namespace

const Backend* backend() {
  static const Backend value{.torch_build = torch_build,
                             .meter = make_meter,
                             .machine = describe_machine,
                             .links = measure_links,
                             .train = train_rank};
  return &value;
}

}  // namespace plait::runtime
