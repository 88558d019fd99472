#include "io/profile/aceso_mapping.h"

#include <algorithm>
#include <cstdlib>

namespace plait {
namespace {

// Attention is one op here and five there; its time goes to the three that compute.
constexpr double kThird = 1.0 / 3;

constexpr AcesoMapping kGpt[] = {
    {"encoder-embedding", "embedding", ""},
    {"enc-1st-layernorm", "decoder", "attention.norm"},
    {"enc-attention-qkv", "decoder", "attention.qkv"},
    {"enc-attention-score", "decoder", "attention.core", kThird},
    {"enc-attention-softmax", "decoder", "attention.core", kThird},
    {"enc-attention-dropout", "decoder", "attention.core", 0},
    {"enc-attention-context", "decoder", "attention.core", kThird},
    {"enc-attention-dense", "decoder", "attention.projection"},
    {"enc-post-attention-dropout", "decoder", "attention.residual"},
    {"enc-2nd-layernorm", "decoder", "mlp.norm"},
    {"enc-MLP-GEMM-1", "decoder", "mlp.up"},
    {"enc-MLP-gelu", "decoder", "mlp.activation"},
    {"enc-MLP-GEMM-2", "decoder", "mlp.down"},
    {"enc-post-MLP-dropout", "decoder", "mlp.residual"},
    {"final-layernorm", "head", "norm"},
    {"gpt-post-process", "head", "!norm"},
};

constexpr AcesoMapping kT5[] = {
    {"encoder-embedding", "embedding", ""},
    {"enc-1st-layernorm", "encoder", "attention.norm"},
    {"enc-attention-qkv", "encoder", "attention.qkv"},
    {"enc-attention-score", "encoder", "attention.core", kThird},
    {"enc-attention-softmax", "encoder", "attention.core", kThird},
    {"enc-attention-dropout", "encoder", "attention.core", 0},
    {"enc-attention-context", "encoder", "attention.core", kThird},
    {"enc-attention-dense", "encoder", "attention.projection"},
    {"enc-post-attention-dropout", "encoder", "attention.residual"},
    {"enc-2nd-layernorm", "encoder", "mlp.norm"},
    {"enc-MLP-GEMM-1", "encoder", "mlp.up"},
    {"enc-MLP-gelu", "encoder", "mlp.activation"},
    {"enc-MLP-GEMM-2", "encoder", "mlp.down"},
    {"enc-post-MLP-dropout", "encoder", "mlp.residual"},
    {"enc-final-layernorm", "decoder_embedding", "norm"},
    {"decoder-embedding", "decoder_embedding", "!norm"},
    {"dec-1st-layernorm", "decoder", "attention.norm"},
    {"dec-attention-qkv-1", "decoder", "attention.qkv"},
    {"dec-attention-score-1", "decoder", "attention.core", kThird},
    {"dec-attention-softmax-1", "decoder", "attention.core", kThird},
    {"dec-attention-dropout-1", "decoder", "attention.core", 0},
    {"dec-attention-context-1", "decoder", "attention.core", kThird},
    {"dec-attention-dense-1", "decoder", "attention.projection"},
    {"dec-post-attention-dropout-1", "decoder", "attention.residual"},
    {"dec-2nd-layernorm", "decoder", "cross.norm"},
    {"dec-attention-qkv-2", "decoder", "cross.q"},
    {"dec-attention-score-2", "decoder", "cross.core", kThird},
    {"dec-attention-softmax-2", "decoder", "cross.core", kThird},
    {"dec-attention-dropout-2", "decoder", "cross.core", 0},
    {"dec-attention-context-2", "decoder", "cross.core", kThird},
    {"dec-attention-dense-2", "decoder", "cross.projection"},
    {"dec-post-attention-dropout-2", "decoder", "cross.residual"},
    {"dec-3rd-layernorm", "decoder", "mlp.norm"},
    {"dec-MLP-GEMM-1", "decoder", "mlp.up"},
    {"dec-MLP-gelu", "decoder", "mlp.activation"},
    {"dec-MLP-GEMM-2", "decoder", "mlp.down"},
    {"dec-post-MLP-dropout", "decoder", "mlp.residual"},
    {"dec-final-layernorm", "head", "norm"},
    {"t5-post-process", "head", "!norm"},
};

// "downsample" is a convolution with its norm in the first block of a stage; in the others it adds
// the residual, as the first half of what is one op here. Activations are inside the norms there.
std::string_view resnet_op(std::string_view aceso) {
  if (aceso.ends_with("-0-downsample")) return "downsample";
  if (aceso.ends_with("-downsample") || aceso.ends_with("-relu")) return "add_relu";
  return aceso.starts_with("block-") ? aceso.substr(aceso.rfind('-') + 1) : aceso;
}

}  // namespace

std::span<const AcesoMapping> aceso_mappings(std::string_view family) {
  if (family == "gpt" || family == "scale-layer") return kGpt;
  if (family == "t5") return kT5;
  return {};
}

bool matches(const AcesoMapping& mapping, const Op& op) {
  if (mapping.op.empty()) return true;
  const bool norm = op.kind == OpKind::norm;
  if (mapping.op == "norm") return norm;
  if (mapping.op == "!norm") return !norm;
  return op.name == mapping.op;
}

std::string resnet_layer(std::string_view aceso) {
  if (aceso == "avgpool" || aceso == "fc") return "head";
  if (!aceso.starts_with("block-")) return "stem";
  const std::string_view place = aceso.substr(6);  // "2-0-conv1"
  const std::size_t dash = std::min(place.find('-'), place.size());
  std::string stage =
      "stage" + std::to_string(std::atoi(std::string(place.substr(0, dash)).c_str()) + 1);
  return place.substr(dash).starts_with("-0-") ? stage + "_first" : stage;
}

bool is_unit_of(std::string_view family, std::string_view aceso, const LayerKind& unit) {
  if (unit.ops.size() != 1) return false;
  const Op& op = unit.ops.front();
  if (family == "resnet")
    return unit.name == resnet_layer(aceso) + "." + op.name && op.name == resnet_op(aceso);
  return std::ranges::any_of(aceso_mappings(family), [&](const AcesoMapping& row) {
    return row.aceso == aceso && unit.name.starts_with(std::string(row.kind) + ".") &&
           matches(row, op);
  });
}

}  // namespace plait
