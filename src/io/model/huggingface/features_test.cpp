#include <gtest/gtest.h>

#include <cmath>

#include "base/sample_complaint.h"
#include "io/model/huggingface/huggingface.h"

namespace plait {
namespace {

using Layers = std::vector<int>;

TransformerReading read(const std::string& members, std::optional<int> sequence = std::nullopt) {
  return read_huggingface(parse_json("config.json", "{" + members + "}"), sequence);
}

TransformerConfig config(const std::string& type, const std::string& more = "") {
  return read(R"("model_type": ")" + type + "\"" + (more.empty() ? "" : ", " + more)).config;
}

std::string complaint(const std::string& members) {
  return samples::complaint([&] { read(members); });
}

TEST(HuggingFaceFeatures, BloomAndMptHaveAlibi) {
  EXPECT_EQ(config("bloom").positions, Positions::alibi);
  const TransformerConfig mpt = config("mpt");
  EXPECT_EQ(mpt.positions, Positions::alibi);
  EXPECT_EQ(mpt.norm, NormKind::layer);
  EXPECT_FALSE(mpt.norm_shift);
  EXPECT_TRUE(mpt.not_modelled.empty());
  EXPECT_EQ(config("mpt", R"("attn_config": {"clip_qkv": 8})").not_modelled.size(), 1u);
  // Falcon scales its bias as it does the scores.
  EXPECT_EQ(config("falcon", R"("alibi": true)").not_modelled.size(), 1u);
}

TEST(HuggingFaceFeatures, WindowsAreInTheLayersThatTheFamilySays) {
  EXPECT_EQ(config("mistral").window, (AttentionWindow{4096, {}}));
  EXPECT_EQ(config("mistral", R"("sliding_window": null)").window, AttentionWindow{});
  EXPECT_EQ(config("llama").window, AttentionWindow{});
  EXPECT_EQ(config("gemma2", R"("num_hidden_layers": 4)").window, (AttentionWindow{4096, {1, 3}}));
  EXPECT_EQ(config("gemma3_text", R"("num_hidden_layers": 12, "sliding_window": 512)").window,
            (AttentionWindow{512, {5, 11}}));
  EXPECT_EQ(config("gpt_neo", R"("num_layers": 4)").window, (AttentionWindow{256, {0, 2}}));
  EXPECT_EQ(config("gpt_neo", R"("num_layers": 2, "attention_types": [[["global"], 2]])").window,
            AttentionWindow{});
  // Qwen 2 has windows where it is told to, from a layer on.
  const std::string qwen =
      R"("num_hidden_layers": 4, "sliding_window": 64, "max_window_layers": 2)";
  EXPECT_EQ(config("qwen2", qwen).window, AttentionWindow{});
  EXPECT_EQ(config("qwen2", qwen + R"(, "use_sliding_window": true)").window,
            (AttentionWindow{64, {0, 1}}));
  EXPECT_EQ(config("mistral", R"("num_hidden_layers": 2,
                                 "layer_types": ["full_attention", "sliding_attention"])")
                .window,
            (AttentionWindow{4096, {0}}));
  EXPECT_EQ(config("llama", R"("num_hidden_layers": 1, "layer_types": ["linear_attention"])")
                .not_modelled,
            std::vector<std::string>{"attention of the kind 'linear_attention'"});
}

TEST(HuggingFaceFeatures, WindowsAreWarnedAboutWhereTheyMatter) {
  const std::string mistral = R"("model_type": "mistral", "sliding_window": 512)";
  EXPECT_TRUE(read(mistral, 512).warnings.empty());
  ASSERT_EQ(read(mistral, 1024).warnings.size(), 1u);
  EXPECT_EQ(read(mistral, 1024).warnings[0],
            "attention in a sliding window of 512 tokens is counted as full attention");
}

TEST(HuggingFaceFeatures, GemmaScalesAndCaps) {
  const TransformerConfig gemma = config("gemma2", R"("hidden_size": 64, "head_dim": 16)");
  EXPECT_DOUBLE_EQ(gemma.embedding_scale, 8);
  EXPECT_DOUBLE_EQ(gemma.attention_scale, 1 / std::sqrt(256.0));
  EXPECT_EQ(gemma.score_cap, 50);
  EXPECT_EQ(gemma.logit_cap, 30);
  EXPECT_EQ(gemma.activation, Function::gelu_tanh);
  EXPECT_EQ(config("gemma2", R"("attn_logit_softcapping": null)").score_cap, 0);
  EXPECT_EQ(config("gemma3_text").score_cap, 0);
  EXPECT_EQ(config("gemma").attention_scale, 0);
}

TEST(HuggingFaceFeatures, OtherScalesAreTheFamilys) {
  const TransformerConfig granite =
      config("granite", R"("embedding_multiplier": 12, "logits_scaling": 8,
                           "residual_multiplier": 0.25, "attention_multiplier": 0.5)");
  EXPECT_EQ(granite.embedding_scale, 12);
  EXPECT_EQ(granite.logit_scale, 0.125);
  EXPECT_EQ(granite.residual_scale, 0.25);
  EXPECT_EQ(granite.attention_scale, 0.5);
  EXPECT_EQ(config("cohere").logit_scale, 0.0625);
  EXPECT_EQ(config("gpt_neo").attention_scale, 1);
  // A tied T5 scales its last output by 1 / sqrt(512), an untied one does not.
  EXPECT_DOUBLE_EQ(config("t5").logit_scale, 1 / std::sqrt(512.0));
  EXPECT_EQ(config("t5", R"("tie_word_embeddings": false)").logit_scale, 1);
  EXPECT_EQ(config("bart").embedding_scale, 1);
  EXPECT_EQ(config("bart", R"("scale_embedding": true)").embedding_scale, 32);
}

TEST(HuggingFaceFeatures, AnglesAreReadInBothSpellings) {
  EXPECT_EQ(config("llama").rotary, Rotary{});
  const Rotary old = config("llama", R"("rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3",
      "factor": 32, "low_freq_factor": 1, "high_freq_factor": 4,
      "original_max_position_embeddings": 8192})")
                         .rotary;
  EXPECT_EQ(old.base, 5e5);
  EXPECT_EQ(old.scaling, RotaryScaling::llama3);
  EXPECT_EQ(old.factor, 32);
  EXPECT_EQ(config("llama", R"("rope_parameters": {"rope_theta": 5e5, "rope_type": "llama3",
      "factor": 32})")
                .rotary,
            old);
  const Rotary gemma = config("gemma3_text", R"("rope_parameters": {
      "full_attention": {"rope_theta": 2e6, "rope_type": "linear", "factor": 8},
      "sliding_attention": {"rope_theta": 500, "rope_type": "default"}})")
                           .rotary;
  EXPECT_EQ(gemma.base, 2e6);
  EXPECT_EQ(gemma.local_base, 500);
  EXPECT_EQ(gemma.factor, 8);
  EXPECT_TRUE(config("gptj").rotary.neighbours);
  EXPECT_EQ(config("smollm3", R"("num_hidden_layers": 8)").rotary.unturned, (Layers{3, 7}));
  EXPECT_EQ(config("llama", R"("rope_scaling": {"type": "yarn", "factor": 4})").not_modelled,
            std::vector<std::string>{"rotary positions that are scaled by 'yarn'"});
}

TEST(HuggingFaceFeatures, NoMoreOfAHeadIsTurnedThanThereIs) {
  EXPECT_EQ(config("gptj").rotary_dim, 64);
  EXPECT_EQ(config("gptj", R"("rotary_dim": null)").rotary_dim, 0);
  EXPECT_EQ(complaint(R"("model_type": "gptj", "n_embd": 64, "n_head": 4, "rotary_dim": 32)"),
            "config.json#: rotary_dim (32) must be at most the size of a head (16)");
  EXPECT_EQ(complaint(R"("model_type": "phi", "partial_rotary_factor": 1.5)"),
            "config.json#/partial_rotary_factor: must be from 0 to 1, is 1.5");
  EXPECT_NE(complaint(R"("model_type": "phi", "partial_rotary_factor": -1)"), "");
}

TEST(HuggingFaceFeatures, ExpertsAreWeighedAsTheFamilyDoes) {
  EXPECT_TRUE(config("mixtral").moe.normalised);
  EXPECT_FALSE(config("olmoe").moe.normalised);
  EXPECT_TRUE(config("qwen3_moe", R"("norm_topk_prob": true)").moe.normalised);
  for (const char* type : {"deepseek_v3", "glm4_moe", "phimoe", "llama4_text", "gpt_oss"})
    EXPECT_FALSE(config(type).not_modelled.empty()) << type;
}

TEST(HuggingFaceFeatures, ActivationsThatAreNotKnownAreNoted) {
  EXPECT_EQ(config("nemotron").not_modelled, std::vector<std::string>{"the activation 'relu2'"});
  EXPECT_EQ(config("llama", R"("hidden_act": "mish")").not_modelled,
            std::vector<std::string>{"the activation 'mish'"});
  EXPECT_EQ(config("t5", R"("feed_forward_proj": "gated-silu")").activation, Function::silu);
  EXPECT_EQ(config("t5", R"("feed_forward_proj": "gated-gelu")").activation, Function::gelu_new);
}

TEST(HuggingFaceFeatures, HeadsThatAreNotExpressedAreNoted) {
  EXPECT_TRUE(
      config("bert", R"("architectures": ["BertForSequenceClassification"])").not_modelled.empty());
  for (const char* head : {"BertForTokenClassification", "BertForMultipleChoice",
                           "BertForQuestionAnswering", "BertForSomething"})
    EXPECT_EQ(
        config("bert", R"("architectures": [")" + std::string(head) + R"("])").not_modelled.size(),
        1u)
        << head;
  EXPECT_EQ(config("llama", R"("architectures": ["LlamaForSequenceClassification"])").not_modelled,
            std::vector<std::string>{"a head on the last token"});
}

TEST(HuggingFaceFeatures, KeysThatNobodyKnowsAreWarnedAbout) {
  const TransformerReading reading =
      read(R"("model_type": "llama", "torch_dtype": "bfloat16", "use_cache": true,
              "bos_token_id": 1, "novel_attention": true, "other": null, "third": false)",
           1024);
  ASSERT_EQ(reading.warnings.size(), 1u);
  EXPECT_EQ(reading.warnings[0],
            "the key 'novel_attention' is not understood: if it changes the network, it is not in "
            "the prediction");
  EXPECT_EQ(reading.config.unknown_keys, std::vector<std::string>{"novel_attention"});
}

TEST(HuggingFaceFeatures, FilesOfTheHubHaveNoUnknownKeys) {
  // The keys of Llama 3, GPT-2, BLOOM and BERT as the hub has them.
  for (
      const char* members :
      {R"("model_type": "llama", "architectures": ["LlamaForCausalLM"], "attention_bias": false,
           "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": 128001,
           "hidden_act": "silu", "initializer_range": 0.02, "max_position_embeddings": 4096,
           "mlp_bias": false, "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null,
           "rope_theta": 500000.0, "torch_dtype": "bfloat16", "transformers_version": "4.43.0",
           "use_cache": true)",
       R"("model_type": "gpt2", "activation_function": "gelu_new", "attn_pdrop": 0.1,
           "embd_pdrop": 0.1, "layer_norm_epsilon": 1e-05, "n_ctx": 1024, "resid_pdrop": 0.1,
           "summary_activation": null, "summary_type": "cls_index", "summary_use_proj": true,
           "task_specific_params": {"text-generation": {"max_length": 50}})",
       R"("model_type": "bloom", "apply_residual_connection_post_layernorm": false,
           "attention_softmax_in_fp32": true, "bias_dropout_fusion": true, "hidden_dropout": 0.0,
           "masked_softmax_fusion": true, "n_inner": null, "offset_alibi": 100, "seq_length": 2048,
           "skip_bias_add": true, "skip_bias_add_qkv": false, "unk_token_id": 0)",
       R"("model_type": "bert", "attention_probs_dropout_prob": 0.1, "gradient_checkpointing": false,
           "layer_norm_eps": 1e-12, "pad_token_id": 0, "position_embedding_type": "absolute",
           "type_vocab_size": 2, "use_cache": true)"})
    EXPECT_TRUE(read(members).config.unknown_keys.empty()) << members;
}

}  // namespace
}  // namespace plait
