#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "io/profile/import_aceso.h"

namespace plait {
namespace {

constexpr int kMostLayers = 10'000;
constexpr int kMostOps = 200'000;

const std::vector<std::string>& encoder_layer() {
  static const std::vector<std::string> ops{"enc-1st-layernorm",     "enc-attention-qkv",
                                            "enc-attention-score",   "enc-attention-softmax",
                                            "enc-attention-dropout", "enc-attention-context",
                                            "enc-attention-dense",   "enc-post-attention-dropout",
                                            "enc-2nd-layernorm",     "enc-MLP-GEMM-1",
                                            "enc-MLP-gelu",          "enc-MLP-GEMM-2",
                                            "enc-post-MLP-dropout"};
  return ops;
}

const std::vector<std::string>& decoder_layer() {
  static const std::vector<std::string> ops{"dec-1st-layernorm",
                                            "dec-attention-qkv-1",
                                            "dec-attention-score-1",
                                            "dec-attention-softmax-1",
                                            "dec-attention-dropout-1",
                                            "dec-attention-context-1",
                                            "dec-attention-dense-1",
                                            "dec-post-attention-dropout-1",
                                            "dec-2nd-layernorm",
                                            "dec-attention-qkv-2",
                                            "dec-attention-score-2",
                                            "dec-attention-softmax-2",
                                            "dec-attention-dropout-2",
                                            "dec-attention-context-2",
                                            "dec-attention-dense-2",
                                            "dec-post-attention-dropout-2",
                                            "dec-3rd-layernorm",
                                            "dec-MLP-GEMM-1",
                                            "dec-MLP-gelu",
                                            "dec-MLP-GEMM-2",
                                            "dec-post-MLP-dropout"};
  return ops;
}

bool mentions(const std::string& name, std::string_view word) {
  return name.find(word) != name.npos;
}

// A convolution of its own in the first block of a stage; elsewhere the sum with the residual.
bool is_downsampling(const std::string& name) { return name.ends_with("-0-downsample"); }

bool is_convolution(const std::string& name) {
  return mentions(name, "conv") || is_downsampling(name);
}

bool backward_needs_input(const std::string& name) {
  if (name.empty()) return true;
  if (mentions(name, "downsample")) return is_downsampling(name);
  return !mentions(name, "softmax") && !mentions(name, "dropout") && !mentions(name, "relu") &&
         !mentions(name, "embedding");
}

bool backward_needs_output(const std::string& name) {
  return mentions(name, "softmax") || mentions(name, "relu");
}

bool ends_residual(const std::string& name) {
  return mentions(name, "post-attention-dropout") || mentions(name, "post-MLP-dropout") ||
         name.ends_with("-relu");
}

// The part of the growth that is the op's output: all of it but for a mask of one byte for each
// two-byte value (dropout), indices of eight for each four (pooling), the input of the batch norm
// that follows a down-sampling convolution, and logits.
double output_share(const std::string& name) {
  if (mentions(name, "post-process")) return 0;
  if (mentions(name, "dropout") || mentions(name, "embedding")) return 2.0 / 3;
  if (mentions(name, "maxpool")) return 1.0 / 3;
  return is_downsampling(name) ? 0.5 : 1;
}

constexpr double kPasses = 3;  // two operands and the sum

// The profiler makes its output gradients by a max pool over each channel: all but one value in a
// channel are zero. Products with zeros draw less power, and the device keeps a clock that it does
// not keep on the dense gradients of training; fp32 convolutions draw the most. (GPT and T5 runs
// train on equal tokens, which are as easy.) From the six published ResNet runs, 500M to 13B: each
// took 5.6 to 10.2 % longer than the sum of its ops, 7.1 % in the median, of which gradient sums
// explain 1.5 %; backward convolutions are half of the time.
constexpr double kDenseGradients = 1.11;

}  // namespace

std::vector<std::string> aceso_op_list(const std::string& family, const std::vector<int>& layers) {
  std::vector<std::string> ops;
  const auto append = [&](const std::vector<std::string>& layer, int times) {
    for (int i = 0; i < times; ++i) ops.insert(ops.end(), layer.begin(), layer.end());
  };
  int sum = 0;
  for (const int count : layers) {
    if (count < 1 || count > kMostLayers)
      throw InputError("num_layers",
                       fmt::format("must be from 1 to {}, is {}", kMostLayers, count));
    sum += count;
  }
  if (sum > kMostOps / 40) throw InputError("num_layers", "has too many layers");
  if (family == "resnet") {
    ops = {"conv1", "bn1", "relu1", "maxpool"};
    for (std::size_t stage = 0; stage < layers.size(); ++stage)
      for (int block = 0; block < layers[stage]; ++block)
        for (const char* op :
             {"conv1", "bn1", "conv2", "bn2", "conv3", "bn3", "downsample", "relu"})
          ops.push_back(fmt::format("block-{}-{}-{}", stage, block, op));
    append({"avgpool", "fc"}, 1);
    return ops;
  }
  if (layers.size() != 1)
    throw InputError("num_layers", fmt::format("must be one number for {}", family));
  if (family == "gpt" || family == "scale-layer") {
    append({"encoder-embedding"}, 1);
    append(encoder_layer(), layers[0]);
    append({"final-layernorm", "gpt-post-process"}, 1);
    return ops;
  }
  if (family != "t5")
    throw InputError("model_name",
                     fmt::format("must be gpt, t5 or resnet, is '{}'", family.substr(0, 40)));
  append({"encoder-embedding"}, 1);
  append(encoder_layer(), layers[0]);
  append({"enc-final-layernorm", "decoder-embedding"}, 1);
  append(decoder_layer(), layers[0]);
  append({"dec-final-layernorm", "t5-post-process"}, 1);
  return ops;
}

bool starts_aceso_layer(const std::string& op) {
  return op == "enc-1st-layernorm" || op.ends_with("-conv1") || op == "conv1" ||
         mentions(op, "embedding") || mentions(op, "final-layernorm") ||
         mentions(op, "post-process");
}

ComputeSample aceso_sample(const std::string& name, const AcesoOp& op, const AcesoOp* before,
                           const std::string& before_name, const std::string& after_name,
                           BytesPerSecond memory_rate) {
  const Bytes output = op.activations * output_share(name);
  const Bytes handed =
      before == nullptr ? op.input : before->activations * output_share(before_name);
  ComputeSample sample;
  sample.forward = op.forward;
  sample.backward = op.backward * (is_convolution(name) ? kDenseGradients : 1) +
                    kPasses * op.weights / memory_rate;
  if (ends_residual(name)) *sample.backward += kPasses * output / memory_rate;
  sample.communication_inside = true;
  Bytes saved = op.activations - output;
  if (backward_needs_input(name)) saved += handed;
  if (backward_needs_output(name) && !backward_needs_input(after_name)) saved += output;
  sample.saved_activations = saved;
  const bool kept_before = backward_needs_output(before_name) && !backward_needs_input(name);
  sample.input = kept_before ? Bytes(0) : handed;
  sample.workspace = output + handed;
  if (is_convolution(name))
    sample.workspace = std::max(*sample.workspace, op.forward_reserved + op.backward_reserved);
  return sample;
}

void add_aceso_ops(const AcesoTable& table, const std::vector<std::string>& ops,
                   const DeviceType& device, Profile& profile) {
  const BytesPerSecond rate = device.memory_bandwidth * device.efficiency.memory;
  for (const auto& [point, rows] : table.points) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const auto row = rows.find(ops[i]);
      if (row == rows.end())
        throw InputError(fmt::format("{}_mbs{}_tp{}_algo{}.csv", table.name, point.micro_batch,
                                     point.tensor, point.algorithm),
                         fmt::format("has no op '{}'", ops[i]));
      const AcesoOp* before = nullptr;
      if (const auto at = rows.find(i > 0 ? ops[i - 1] : ""); at != rows.end())
        before = at->second.did_not_fit ? nullptr : &at->second;
      const ComputeKey key{.unit = ops[i],
                           .device_type = device.name,
                           .tensor = point.tensor,
                           .micro_batch = point.micro_batch,
                           .sequence = 0,
                           .split = point.algorithm};
      if (row->second.did_not_fit) {
        profile.compute[key] = {.out_of_memory = true};
        continue;
      }
      // Of layers that repeat, the last counts: its neighbours are those of most others.
      profile.compute[key] = aceso_sample(ops[i], row->second, before, i > 0 ? ops[i - 1] : "",
                                          i + 1 < ops.size() ? ops[i + 1] : "", rate);
    }
  }
}

}  // namespace plait
