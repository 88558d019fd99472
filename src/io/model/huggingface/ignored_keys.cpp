// Keys of a config that do not change the network, or change it in a way that the reader of another
// key knows.

#include <algorithm>
#include <string_view>

#include "io/model/huggingface/fields.h"

namespace plait {
namespace {

// Files, tokens, generation, training, and how the library computes what the other keys say.
constexpr std::string_view kHarmless[] = {
    "adaptive_softmax",
    "add_bias_logits",
    "add_final_layer_norm",
    "architectures",
    "attention_dropout",
    "attention_softmax_in_fp32",
    "attn_implementation",
    "attn_pdrop",
    "auto_map",
    "aux_loss_alpha",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bias_dropout_fusion",
    "bos_token_id",
    "cache_implementation",
    "chunk_size_feed_forward",
    "classif_dropout",
    "classifier_dropout",
    "classifier_dropout_prob",
    "conversation_template",
    "cross_attention_hidden_size",
    "decoder_layerdrop",
    "decoder_vocab_size",
    "diversity_penalty",
    "do_sample",
    "down_scale_factor",
    "dropout",
    "dtype",
    "early_stopping",
    "emb_pdrop",
    "embd_pdrop",
    "embed_dropout",
    "embedding_dropout",
    "embedding_fraction",
    "encoder_layerdrop",
    "encoder_no_repeat_ngram_size",
    "encoder_stride",
    "encoder_vocab_size",
    "eos_token_id",
    "ep_size",
    "experts_per_token",
    "exponential_decay_length_penalty",
    "extra_pos_embeddings",
    "feed_forward_proj",
    "ffn_dropout",
    "finetuning_task",
    "force_bos_token_to_be_generated",
    "gap_size",
    "gradient_checkpointing",
    "gradient_checkpointing_kwargs",
    "gradient_checkpointing_use_reentrant",
    "hidden_dropout_prob",
    "id2label",
    "init_config",
    "init_device",
    "init_std",
    "initial_context_length",
    "initializer_cutoff_factor",
    "initializer_factor",
    "initializer_range",
    "initializer_std",
    "inner_dim",
    "interpolate_pos_encoding",
    "is_decoder",
    "is_encoder_decoder",
    "is_gated_act",
    "is_llama_config",
    "keys_to_ignore_at_inference",
    "label2id",
    "layer_types",
    "layerdrop",
    "learned_pos_emb",
    "length_penalty",
    "loss_fn",
    "masked_softmax_fusion",
    "max_length",
    "max_new_tokens",
    "max_position_embeddings",
    "max_seq_len",
    "max_window_layers",
    "min_length",
    "model_max_length",
    "model_type",
    "n_ctx",
    "n_positions",
    "name_or_path",
    "net_structure_type",
    "no_bias",
    "no_repeat_ngram_size",
    "norm_type",
    "normalize_before",
    "normalize_embedding",
    "num_beam_groups",
    "num_beams",
    "num_hidden_groups",
    "num_hidden_layers",
    "num_labels",
    "num_memory_blocks",
    "num_nextn_predict_layers",
    "num_return_sequences",
    "offset_alibi",
    "original_max_position_embeddings",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "output_router_logits",
    "output_scores",
    "pad_token_id",
    "pooler_act",
    "prefix",
    "pretraining_bias",
    "pretraining_tp",
    "problem_type",
    "pruned_heads",
    "quantization_config",
    "remove_invalid_values",
    "reorder_and_upcast_attn",
    "repetition_penalty",
    "resid_dropout",
    "return_dict",
    "return_dict_in_generate",
    "rope_parameters",
    "rope_scaling",
    "router_aux_loss_coef",
    "router_z_loss_coef",
    "scale_attention_softmax_in_fp32",
    "seq_aux",
    "seq_classif_dropout",
    "seq_length",
    "share_encoder_decoder_embeddings",
    "skip_bias_add",
    "skip_bias_add_qkv",
    "slow_but_exact",
    "static_position_embeddings",
    "summary_activation",
    "summary_first_dropout",
    "summary_last_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "suppress_tokens",
    "swiglu_limit",
    "task_specific_params",
    "temperature",
    "text_config",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tie_word_embeddings",
    "token_healing",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "typical_p",
    "unk_token_id",
    "unsloth_version",
    "use_bfloat16",
    "use_cache",
    "use_flash_attn",
    "use_return_dict",
    "verbose",
    "vision_config",
    "vocab_file",
};

constexpr std::string_view kHarmlessEnds[] = {"_token_id", "_token_ids",    "_dropout",
                                              "_pdrop",    "_dropout_prob", "_token_index"};

bool says_something(const JsonValue& value) {
  if (value.is_null()) return false;
  if (value.is_boolean()) return value.boolean();
  if (value.is_array()) return !value.items().empty();
  if (value.is_object()) return !value.members().empty();
  if (value.is_string()) return !value.text().empty();
  return true;
}

}  // namespace

std::vector<std::string> unknown_keys(const HfFields& fields) {
  std::vector<std::string> unknown;
  for (const auto& [key, value] : fields.root().members()) {
    const std::string_view name = key;
    if (fields.was_read(key) || name.starts_with('_') || !says_something(value)) continue;
    if (std::ranges::find(kHarmless, name) != std::end(kHarmless)) continue;
    const auto ends = [name](std::string_view end) { return name.ends_with(end); };
    if (std::ranges::any_of(kHarmlessEnds, ends)) continue;
    unknown.push_back(key);
  }
  return unknown;
}

}  // namespace plait
