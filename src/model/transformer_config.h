#pragma once

#include <string>
#include <vector>

#include "model/op.h"

namespace plait {

enum class NormKind { layer, rms };  // a layer norm also subtracts the mean

// Where a block normalises, x being its input and f attention or the MLP.
enum class NormPlace {
  before,        // x + f(norm(x))            GPT-2, Llama
  sandwich,      // x + norm(f(norm(x)))      Gemma 2 and 3
  after,         // x + norm(f(x))            OLMo 2
  after_adding,  // norm(x + f(x))            BERT, OPT-350M
};

enum class Positions {
  none,
  learned,     // a table of `position_rows` rows, one for each stack
  rotary,      // applied to queries and keys
  relative,    // T5: a table of `relative_buckets` rows, one bias per head, once per stack
  alibi,       // scores less a slope per head times the distance (Press et al., arXiv 2108.12409)
  sinusoidal,  // fixed sines and cosines; kept as a table where `position_rows` > 0 (Marian)
};

// How the angles of rotary positions are stretched to read more positions than were trained on.
enum class RotaryScaling {
  none,
  linear,  // positions are divided by `factor`
  llama3,  // low frequencies only, by wave length (Grattafiori et al., arXiv 2407.21783)
};

// Positions::rotary (Su et al., arXiv 2104.09864): pair i of n turns by position * base^(-i / n).
struct Rotary {
  double base = 10'000;
  double local_base = 0;    // of layers with a window, which are not scaled (Gemma 3); 0 = as base
  bool neighbours = false;  // pairs are features 2i and 2i + 1 (GPT-J), not i and i + n
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1;
  double low_factor = 1;           // llama3
  double high_factor = 4;          // llama3
  int trained_positions = 8192;    // llama3: before the stretching
  std::vector<int> unturned = {};  // these layers (0-based) have no positions at all (SmolLM 3)
  friend bool operator==(const Rotary&, const Rotary&) = default;
};

// Attention to the last `size` positions only, the own one included; 0 = to all.
struct AttentionWindow {
  int size = 0;
  std::vector<int> full = {};  // these layers (0-based) attend to all positions
  friend bool operator==(const AttentionWindow&, const AttentionWindow&) = default;
};

enum class QkNorm {
  none,
  per_head,   // one norm of head_dim for all query heads, one for all key heads (Qwen 3)
  whole,      // over all heads together (OLMo 2)
  each_head,  // each head by itself, with a scale of its own (Cohere, StableLM)
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
  int groups = 1;            // of neighbouring experts
  int chosen_groups = 1;     // of which a token visits this many at most (DeepSeek-V2, -V3)
  int ffn = 0;               // width of one expert
  int shared_ffn = 0;        // width of the experts that every token visits, all together; 0 = none
  bool shared_gate = false;  // a learnt gate h -> 1 on the shared experts (Qwen 2)
  bool bias = false;         // in the experts' matrices
  bool router_bias = false;  // learnt bias per expert (GPT-OSS)
  bool normalised = true;    // shares of the chosen experts sum to 1; false: softmax over all
  double scale = 1;          // of the shares
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
  bool norm_shift = true;   // layer norms learn a shift, besides a scale
  double norm_epsilon = 1e-5;
  bool wide_norm = false;  // RMS norms apply their scale in fp32, before they convert (Gemma)
  bool final_norm = true;
  bool embedding_norm = false;
  bool parallel = false;     // x + attention(norm(x)) + mlp(norm(x))
  bool shared_norm = false;  // with `parallel`: one norm for both
  QkNorm qk_norm = QkNorm::none;
  NormKind qk_norm_kind = NormKind::rms;

  bool attention_sinks = false;  // a learnt score per head that takes part in the softmax (GPT-OSS)
  double attention_scale = 0;    // of scores; 0 = 1 / sqrt(head size), but 1 of relative positions
  double score_cap = 0;          // scores become cap * tanh(score / cap) (Gemma 2); 0 = they do not
  AttentionWindow window = {};

  Positions positions = Positions::learned;
  int position_rows = 0;             // learned; 0 = sequence
  int position_offset = 0;           // learned: the row of the first position (OPT)
  int relative_buckets = 32;         // relative
  int relative_distance = 128;       // relative: from here on all are in the last bucket
  bool relative_everywhere = false;  // relative: every block has a table of its own (UMT5)
  int rotary_dim = 0;  // rotary: features of a head that are cut out, rotated and joined; 0 = all
  Rotary rotary = {};
  int type_vocabulary = 0;  // BERT's segment embedding
  int embedding_width = 0;  // 0 = hidden; else projected to and from hidden (OPT-350M)
  // With embedding_width: positions, segments, norm and the head's last layer have that width, too,
  // and the projections a bias (ALBERT, ELECTRA).
  bool narrow_embedding = false;
  bool tied = true;            // the head uses the embedding's table
  double embedding_scale = 1;  // of what the token table gives
  double residual_scale = 1;   // of what attention or the MLP adds to the stream
  double logit_scale = 1;
  double logit_cap = 0;  // logits become cap * tanh(logit / cap); 0 = they do not

  Head head = Head::language_model;
  int pooler = 0;  // > 0: a dense layer of this many features on the first position
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

  // What a reader recognised but cannot say with the switches above: "a clamped gate". Planning
  // goes on as if it were not there; the network is not the one described, so it is not trained.
  std::vector<std::string> not_modelled = {};
  // Keys of the source that are neither known to be harmless nor read: they may change the network.
  std::vector<std::string> unknown_keys = {};

  friend bool operator==(const TransformerConfig&, const TransformerConfig&) = default;
};

// "" or what is wrong: "heads (12) must divide hidden (770)". Readers turn it into an InputError.
std::string fault_of(const TransformerConfig& config);

// Positions of the first stack: tokens, or patches and the learnt tokens before them; and of the
// decoder of an encoder-decoder.
int source_positions(const TransformerConfig& config);
int target_positions(const TransformerConfig& config);
// The switches as the blocks of an encoder-decoder's decoder have them.
TransformerConfig of_decoder(TransformerConfig config);
// Whether layer `layer` of a stack is a mixture of experts.
bool is_mixture(const TransformerConfig& config, int layer);

}  // namespace plait
