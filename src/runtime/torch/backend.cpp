#include "runtime/backend.h"

#include <torch/torch.h>

#include "runtime/profiler/profile.h"
#include "runtime/torch/measure/profile_backend.h"
#include "runtime/torch/train/train_rank.h"

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
