#include "cli/flags/plan_arguments.h"
#include "plan/names.h"

namespace plait {
namespace {

constexpr int kMostBytes = 8;        // of a number
constexpr int kMostLogitBytes = 64;  // several copies of a logit
constexpr int kMostMultiple = 1'000'000;

}  // namespace

// What runs of one program differ in. `plait validate` reads tables into the same fields.
FlagGroup software_flags(Job& job) {
  return {"How the framework runs it, where it differs from its usual way",
          {{.name = "--flash-kernel",
            .value = "K",
            .help = "generation of flash attention: first (2022 and 2023), second "
                    "(FlashAttention 2), native (FlashAttention 3, cuDNN)",
            .set = into_choice(job.flash_kernel, flash_kernel_named, flash_kernel_names()),
            .choices = as_strings(flash_kernel_names())},
           {.name = "--graph-capture",
            .value = "",
            .help = "steps are captured and replayed (CUDA graphs): the host launches nothing",
            .set = into_switch(job.graph_capture)},
           {.name = "--zero-group",
            .value = "N",
            .help = "devices over which ZeRO or FSDP cuts states, where N divides the replicas "
                    "(hybrid sharding; default: all of them)",
            .set = into_integer(job.zero_group, 1, kMaxDegree),
            .hidden = {"--hsdp-group", "--sharding-group-size"}},
           {.name = "--pure-states",
            .value = "",
            .help = "weights, gradients and optimizer state in 16 bits, without a master copy",
            .set = into_switch(job.pure_states)},
           {.name = "--gradient-bytes",
            .value = "N",
            .help = "bytes of an accumulated gradient",
            .set = into_integer(job.gradient_bytes, 1, kMostBytes)},
           {.name = "--reduce-bytes",
            .value = "N",
            .help = "bytes of a gradient that is summed over replicas",
            .set = into_integer(job.reduce_bytes, 1, kMostBytes)},
           {.name = "--logit-bytes",
            .value = "N",
            .help = "bytes of a logit at the peak of the loss: 4 with a fused loss",
            .set = into_integer(job.logit_bytes, 1, kMostLogitBytes)},
           {.name = "--pad-vocabulary",
            .value = "N",
            .help = "the vocabulary is padded to a multiple of N; 1 = not at all",
            .set = into_integer(job.vocabulary_multiple, 1, kMostMultiple),
            .hidden = {"--make-vocab-size-divisible-by"}}}};
}

}  // namespace plait
