#include "runtime/backend.h"

#include <torch/torch.h>

namespace plait::runtime {
namespace {

std::string library() {
  return std::string("libtorch ") + TORCH_VERSION +
         (torch::cuda::is_available() ? ", CUDA" : ", CPU");
}

}  // namespace

const Backend* backend() {
  static const Backend value{.library = library};
  return &value;
}

}  // namespace plait::runtime
