#pragma once

#include "model/op_list.h"
#include "model/transformer.h"

namespace plait {

// A config with every "0 = ..." resolved, as doubles for the counts.
struct BlockShape {
  explicit BlockShape(const TransformerConfig& config);

  const TransformerConfig* config;
  double hidden, heads, kv_heads, head_dim, ffn;
  double norm_parameters(double width) const;  // of a norm over `width` features
};

// One stack's point of view: how many positions it has and what it attends to.
struct Stack {
  double positions = 0;
  double encoder_positions = 0;  // > 0: has cross attention to an encoder's output
  double window = 0;             // > 0: attention within windows of this many positions (TransGAN)
};

// One block: "attention.*", "cross.*" where the stack has it, then "mlp.*" or the experts.
LayerKind transformer_block(const BlockShape& shape, const Stack& stack, std::string name,
                            bool mixture);

}  // namespace plait
