#pragma once

#include "model/model.h"
#include "model/transformer_config.h"

namespace plait {

// The model as a chain of units: "embedding", "encoder" / "decoder" / "moe_decoder" blocks and
// "head" (final norm, logits, loss); an encoder-decoder has "decoder_embedding" (the encoder's
// final norm and the decoder's table) between its two stacks, and its decoder units hand on the
// encoder's output besides their own.
//
// In 16 bits with dropout a GPT block saves s*b*h*(10 + 24/t) bytes (Korthikanti et al., arXiv
// 2205.05198, eq. 2 without the 5*a*s/h term, which cost/ adds for plain attention). Needs a config
// without fault.
Model build_transformer(const TransformerConfig& config);

}  // namespace plait
