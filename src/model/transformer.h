#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace plait {

enum class NormKind { layer, rms };  // layer norm learns a scale and a shift, RMS norm a scale

// Where a block normalises, x being its input and f attention or the MLP.
enum class NormPlace {
  before,        // x + f(norm(x))            GPT-2, Llama
  sandwich,      // x + norm(f(norm(x)))      Gemma 2 and 3
  after,         // x + norm(f(x))            OLMo 2
  after_adding,  // norm(x + f(x))            BERT, OPT-350M
};

enum class Positions {
  none,      // also ALiBi, which learns nothing
  learned,   // a table of `position_rows` rows, one for each stack
  rotary,    // applied to queries and keys
  relative,  // T5: a table of `relative_buckets` rows, one bias per head, once per stack
};

enum class QkNorm {
  none,
  per_head,  // one norm of head_dim for all query heads, one for all key heads (Qwen 3)
  whole,     // over all heads together (OLMo 2)
};

// What stands on top of the last block.
enum class Head {
  none,            // the bare encoder or decoder
  language_model,  // logits over the vocabulary for every position
  masked,          // BERT: dense, activation, norm, logits
  pretraining,     // the same and next-sentence prediction from the first position
  classifier,      // `classes` logits from one position
};

// A mixture of experts in place of the MLP; experts = 0: none.
struct Moe {
  int experts = 0;
  int top_k = 1;             // experts that a token visits
  int ffn = 0;               // width of one expert
  int shared_ffn = 0;        // width of the experts that every token visits, all together; 0 = none
  bool shared_gate = false;  // a learnt gate h -> 1 on the shared experts (Qwen 2)
  bool bias = false;         // in the experts' matrices
  bool router_bias = false;  // learnt bias per expert (GPT-OSS)
  int first_dense = 0;       // this many first layers have a plain MLP
  int every = 1;             // of the others, layers i with (i + 1) % every == 0 are mixtures
  std::vector<int> dense = {};  // and these layers (0-based) have a plain MLP in any case
  friend bool operator==(const Moe&, const Moe&) = default;
};

// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434); kv_rank = 0: ordinary attention.
struct Mla {
  int q_rank = 0;  // 0 = queries are not compressed
  int kv_rank = 0;
  int nope_dim = 0;   // of a query or key head, without position
  int rope_dim = 0;   // with rotary position; shared by all key heads
  int value_dim = 0;  // of a value head
  friend bool operator==(const Mla&, const Mla&) = default;
};

// Images cut into patches (ViT); patch = 0: tokens from a vocabulary.
struct Patches {
  int image = 0;  // pixels on a side
  int patch = 0;
  int channels = 3;
  int tokens = 1;  // learnt ones before the patches: the class (DeiT: and the teacher's)
  friend bool operator==(const Patches&, const Patches&) = default;
};

// Every switch that tells the known transformers apart, whatever their family is called. The
// defaults, with the sizes set, are GPT-2's.
struct TransformerConfig {
  std::string name = "transformer";
  int sequence = 1024;
  int vocabulary = 0;
  int layers = 0;  // of the encoder when decoder_layers > 0
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;                          // 0 = heads
  int head_dim = 0;                          // 0 = hidden / heads
  int ffn = 0;                               // 0 = 4 * hidden
  bool gated = false;                        // SwiGLU, GeGLU: two matrices up, one down
  Function activation = Function::gelu_new;  // of the MLP; with `gated` of its gate
  bool fused_qkv = true;  // queries, keys and values come from one matrix; else from three

  bool qkv_bias = true;
  bool projection_bias = true;  // attention's output
  bool mlp_bias = true;
  bool head_bias = false;
  int unused_parameters = 0;  // of the head: learnt by name, never computed with

  NormKind norm = NormKind::layer;
  NormPlace norm_place = NormPlace::before;
  bool norm_affine = true;  // false: norms learn nothing
  bool wide_norm = false;   // RMS norms apply their scale in fp32, before they convert (Gemma)
  bool final_norm = true;
  bool embedding_norm = false;
  bool parallel = false;     // x + attention(norm(x)) + mlp(norm(x))
  bool shared_norm = false;  // with `parallel`: one norm for both
  QkNorm qk_norm = QkNorm::none;
  NormKind qk_norm_kind = NormKind::rms;

  bool attention_sinks = false;  // a learnt score per head that takes part in the softmax (GPT-OSS)

  Positions positions = Positions::learned;
  int position_rows = 0;             // learned; 0 = sequence
  int relative_buckets = 32;         // relative
  bool relative_everywhere = false;  // relative: every block has a table of its own (UMT5)
  int rotary_dim = 0;  // rotary: features of a head that are cut out, rotated and joined; 0 = all
  int type_vocabulary = 0;  // BERT's segment embedding
  int embedding_width = 0;  // 0 = hidden; else projected to and from hidden (OPT-350M)
  // With embedding_width: positions, segments, norm and the head's last layer have that width, too,
  // and the projections a bias (ALBERT, ELECTRA).
  bool narrow_embedding = false;
  bool tied = true;  // the head uses the embedding's table

  Head head = Head::language_model;
  int pooler = 0;  // > 0: dense of so many features on the first position
  int classes = 0;
  bool classifier_bias = true;

  bool causal = true;
  bool dropout = true;

  bool shared_layers = false;  // all blocks have the same weights, counted once (ALBERT)

  int decoder_layers = 0;    // > 0: encoder and decoder with cross attention (T5)
  int decoder_sequence = 0;  // 0 = sequence
  int decoder_heads = 0;     // 0 = heads
  int decoder_ffn = 0;       // 0 = ffn

  Moe moe = {};
  Mla mla = {};
  Patches patches = {};

  friend bool operator==(const TransformerConfig&, const TransformerConfig&) = default;
};

// "" or what is wrong: "heads (12) must divide hidden (770)". Readers turn it into an InputError.
std::string fault_of(const TransformerConfig& config);

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
