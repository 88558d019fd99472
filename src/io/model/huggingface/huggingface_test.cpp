#include "io/model/huggingface/huggingface.h"

#include <gtest/gtest.h>

#include "base/sample_complaint.h"

namespace plait {
namespace {

TransformerReading read(const std::string& text, std::optional<int> sequence = std::nullopt) {
  return read_huggingface(parse_json("config.json", text), sequence);
}

std::string complaint(const std::string& text) {
  return samples::complaint([&] { read(text); });
}

double parameters(const std::string& text) {
  return build_transformer(read(text).config).parameters();
}

TEST(HuggingFace, MissingKeysTakeTheDefaultsOfTheModelType) {
  EXPECT_EQ(parameters(R"({"model_type": "gpt2"})"), 124'439'808);
  EXPECT_EQ(parameters(R"({"model_type": "llama"})"), 6'738'415'616);
  EXPECT_EQ(parameters(R"({"model_type": "bert"})"), 109'514'298);
}

TEST(HuggingFace, NullDiffersFromAbsentWhereTransformersSaysSo) {
  EXPECT_EQ(read(R"({"model_type": "mistral"})").config.kv_heads, 8);
  EXPECT_EQ(read(R"({"model_type": "mistral", "num_key_value_heads": null})").config.kv_heads, 32);
  EXPECT_EQ(read(R"({"model_type": "deepseek_v3"})").config.mla.q_rank, 1536);
  EXPECT_EQ(read(R"({"model_type": "deepseek_v3", "q_lora_rank": null})").config.mla.q_rank, 0);
}

TEST(HuggingFace, HeadOfT5IsUntiedOnlyInFilesOfEarlierVersions) {
  const std::string config = R"("model_type": "t5", "tie_word_embeddings": false)";
  EXPECT_TRUE(read("{" + config + "}").config.tied);
  EXPECT_TRUE(read("{" + config + R"(, "transformers_version": "5.22.2"})").config.tied);
  EXPECT_FALSE(read("{" + config + R"(, "transformers_version": "4.23.1"})").config.tied);
}

TEST(HuggingFace, SequenceIsTheCallersElseTheConfigsElseAtMost4096) {
  EXPECT_EQ(read(R"({"model_type": "gpt2"})").config.sequence, 1024);
  EXPECT_EQ(read(R"({"model_type": "llama"})", 512).config.sequence, 512);
  const TransformerReading longer =
      read(R"({"model_type": "llama", "max_position_embeddings": 131072})");
  EXPECT_EQ(longer.config.sequence, 4096);
  ASSERT_EQ(longer.warnings.size(), 1u);
  EXPECT_EQ(longer.warnings[0], "sequence length 4096 is assumed; the model can read up to 131072");
}

TEST(HuggingFace, LearntPositionsGrowWithTheSequence) {
  const TransformerReading reading = read(R"({"model_type": "gpt2"})", 2048);
  EXPECT_EQ(reading.config.position_rows, 2048);
  ASSERT_EQ(reading.warnings.size(), 1u);
  EXPECT_EQ(reading.warnings[0],
            "the model has learnt positions for 1024 tokens only: its table is taken to grow to "
            "2048");
}

TEST(HuggingFace, UnknownModelTypeSaysWhatWasAssumed) {
  const TransformerReading reading = read(
      R"({"model_type": "novel", "vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 4, "intermediate_size": 96, "rms_norm_eps": 1e-6})");
  ASSERT_EQ(reading.warnings.size(), 1u);
  EXPECT_EQ(reading.warnings[0],
            "model_type 'novel' is not known: assumed a decoder with rotary positions, RMS norm "
            "before each part, gated MLP, no biases, untied head");
  // Two tables, per layer 4 h^2 + 3 h f + 2 h, and the final norm.
  EXPECT_EQ(build_transformer(reading.config).parameters(),
            2 * 100 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 96 + 2 * 64) + 64);
}

TEST(HuggingFace, UnknownMixtureIsReadByTheUsualKeys) {
  const TransformerReading reading = read(
      R"({"model_type": "novel_moe", "vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 4, "intermediate_size": 96, "rms_norm_eps": 1e-6,
          "num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 32})");
  EXPECT_EQ(reading.config.moe.experts, 8);
  EXPECT_EQ(reading.config.moe.ffn, 32);
  EXPECT_NE(reading.warnings[0].find("8 experts"), std::string::npos);
}

TEST(HuggingFace, MultimodalConfigGivesItsLanguageModel) {
  const TransformerReading reading =
      read(R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
               "hidden_size": 2560, "num_hidden_layers": 34, "intermediate_size": 10240}})");
  // The hub's google/gemma-3-4b-pt without its vision tower.
  EXPECT_EQ(build_transformer(reading.config).parameters(), 3'880'263'168);
  EXPECT_EQ(reading.warnings[0], "only the language model of a multimodal model is read");
}

TEST(HuggingFace, LabelsAreCountedFromTheirMapFirst) {
  EXPECT_EQ(read(R"({"model_type": "vit", "num_labels": 9,
                     "id2label": {"0": "cat", "1": "dog", "2": "eel"}})")
                .config.classes,
            3);
  EXPECT_EQ(read(R"({"model_type": "vit", "num_labels": 9})").config.classes, 9);
  EXPECT_EQ(read(R"({"model_type": "vit"})").config.classes, 2);
}

TEST(HuggingFace, UnknownArchitectureIsSaid) {
  const TransformerReading reading =
      read(R"({"model_type": "bert", "architectures": ["BertForFortuneTelling"]})");
  ASSERT_EQ(reading.warnings.size(), 1u);
  EXPECT_EQ(reading.warnings[0],
            "architecture 'BertForFortuneTelling' is not known: the usual head of the model type "
            "is assumed");
}

TEST(HuggingFace, BadValuesNameTheirPlace) {
  EXPECT_EQ(complaint(R"({"model_type": "gpt2", "n_layer": 0})"),
            "config.json#/n_layer: must be a whole number from 1 to 268435456, is 0");
  EXPECT_EQ(complaint(R"({"model_type": "gpt2", "n_embd": "big"})"),
            "config.json#/n_embd: must be a whole number from 1 to 268435456, is \"big\"");
  EXPECT_EQ(complaint(R"({"model_type": "gpt2", "n_layer": 1000000000})"),
            "config.json#/n_layer: must be a whole number from 1 to 268435456, is 1000000000");
  EXPECT_EQ(complaint(R"({"model_type": "gpt2", "n_layer": 200000})"),
            "config.json#: layers must be from 1 to 100000, is 200000");
  EXPECT_EQ(complaint(R"({"model_type": "gpt2", "n_head": 7})"),
            "config.json#: heads (7) must divide hidden (768)");
  EXPECT_EQ(complaint(R"({"model_type": "llama", "tie_word_embeddings": 1})"),
            "config.json#/tie_word_embeddings: must be true or false, is 1");
  EXPECT_EQ(complaint(R"({"model_type": 7})"), "config.json#/model_type: must be a text, is 7");
  EXPECT_EQ(complaint(R"({"model_type": "novel"})"),
            "config.json#: model_type 'novel' is not known, and 'vocab_size' is missing");
  EXPECT_EQ(complaint(R"({"model_type": "gpt2", "add_cross_attention": true})"),
            "config.json#/add_cross_attention: cross attention to another model is not supported");
  EXPECT_EQ(complaint(R"({"model_type": "vit", "image_size": [224, 112]})"),
            "config.json#/image_size: must be one number or two equal ones");
  EXPECT_EQ(complaint(R"({"model_type": "bert", "hidden_dropout_prob": -1})"),
            "config.json#/hidden_dropout_prob: must be at least 0, is -1");
}

TEST(HuggingFace, APartWithoutATypeHasThatOfItsModel) {
  const TransformerReading reading =
      read(R"({"model_type": "gemma3", "text_config": {"hidden_size": 2560,
               "num_hidden_layers": 34, "intermediate_size": 10240}})");
  EXPECT_EQ(build_transformer(reading.config).parameters(), 3'880'263'168);
}

TEST(HuggingFace, UnknownEncoderIsReadAsBert) {
  const TransformerReading reading =
      read(R"({"model_type": "novel", "architectures": ["NovelForMaskedLM"], "vocab_size": 30522,
               "hidden_size": 768, "num_hidden_layers": 12, "type_vocab_size": 0})");
  // BERT-base without its two segments.
  EXPECT_EQ(build_transformer(reading.config).parameters(), 109'514'298 - 2 * 768);
  EXPECT_FALSE(reading.config.causal);
  EXPECT_EQ(reading.warnings[0], "model_type 'novel' is not known: assumed an encoder like BERT");
}

TEST(HuggingFace, UnknownEncoderDecoderIsReadAsBartOrT5) {
  const TransformerReading bart =
      read(R"({"model_type": "novel", "vocab_size": 50265, "d_model": 1024, "encoder_layers": 12,
               "decoder_layers": 12})");
  // BART-large.
  EXPECT_EQ(build_transformer(bart.config).parameters(), 406'291'456);
  EXPECT_EQ(bart.warnings[0],
            "model_type 'novel' is not known: assumed an encoder and a decoder like BART");
  const TransformerReading t5 =
      read(R"({"model_type": "novel", "is_encoder_decoder": true, "vocab_size": 32128,
               "d_model": 512, "d_kv": 64, "num_layers": 6, "num_heads": 8, "d_ff": 2048})");
  // T5-small.
  EXPECT_EQ(build_transformer(t5.config).parameters(), 60'506'624);
}

TEST(HuggingFace, UnknownImageModelIsReadAsViT) {
  const TransformerReading reading =
      read(R"({"model_type": "novel", "hidden_size": 768, "num_hidden_layers": 12,
               "num_attention_heads": 12, "image_size": 224, "patch_size": 16})");
  // ViT-base with two labels.
  EXPECT_EQ(build_transformer(reading.config).parameters(), 85'800'194);
  EXPECT_EQ(reading.warnings[0],
            "model_type 'novel' is not known: assumed an image model like ViT");
}

TEST(HuggingFace, GroupsOfExpertsAreThoseOfTheFamilyOrTheConfig) {
  const Moe v3 = read(R"({"model_type": "deepseek_v3"})").config.moe;
  EXPECT_EQ(v3.groups, 8);
  EXPECT_EQ(v3.chosen_groups, 4);
  EXPECT_EQ(
      read(R"({"model_type": "deepseek_v3", "n_group": 1, "topk_group": 1})").config.moe.groups, 1);
  EXPECT_EQ(read(R"({"model_type": "deepseek_v2", "n_group": 8})").config.moe.groups, 1);
  EXPECT_EQ(read(R"({"model_type": "deepseek_v2", "topk_method": "group_limited_greedy",
                     "n_group": 8, "topk_group": 3})")
                .config.moe.chosen_groups,
            3);
}

// However a mixture that is not known says which of its layers have a plain MLP.
TEST(HuggingFace, LayersWithoutExpertsAreFoundInAnyMixture) {
  const auto with = [](const std::string& more) {
    return parameters(R"({"model_type": "later", "vocab_size": 100, "hidden_size": 64,
        "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 256,
        "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32)" +
                      more + "}");
  };
  const double all = with("");
  const double but_one = with(R"(, "first_k_dense_replace": 1)");
  EXPECT_NE(all, but_one);
  for (const char* other : {R"(, "mlp_layer_types": ["dense", "sparse", "sparse"])",
                            R"(, "num_dense_layers": 1)", R"(, "moe_layer_freq": [0, 1, 1])",
                            R"(, "mlp_only_layers": [0])", R"(, "moe_layer_start_index": 1)"})
    EXPECT_EQ(with(other), but_one) << other;
  EXPECT_EQ(with(R"(, "moe_layer_freq": 1)"), all);
}

TEST(HuggingFace, WhatIsNoKnownKindOfModelIsRefused) {
  EXPECT_EQ(complaint(R"({"model_type": "hearing", "num_mel_bins": 80, "vocab_size": 51865})"),
            "config.json#: model_type 'hearing' is not known, and it reads sound, not text or "
            "images");
  EXPECT_EQ(complaint(R"({"model_type": "swin", "image_size": 224, "depths": [2, 2, 6, 2]})"),
            "config.json#: model type 'swin' is a network of images with convolutions or stages of "
            "several sizes; plait has Wide-ResNet and ViT of its own");
  EXPECT_EQ(
      complaint(R"({"model_type": "mamba", "vocab_size": 50280, "hidden_size": 768,
                          "num_hidden_layers": 32})"),
      "config.json#: model type 'mamba' is a state-space or recurrent network; only layers of "
      "attention and feed-forward products are predicted");
  EXPECT_EQ(complaint(R"({"model_type": "later", "vocab_size": 100, "hidden_size": 64,
                          "num_hidden_layers": 2, "num_attention_heads": 4,
                          "layer_types": ["linear_attention", "full_attention"]})"),
            "config.json#: model type 'later' has layers of the kind 'linear_attention', a "
            "state-space or recurrent network; only layers of attention and feed-forward products "
            "are predicted");
  EXPECT_TRUE(complaint(R"({"model_type": "later", "text_config": {"linear_num_key_heads": 4}})")
                  .starts_with("config.json#: model type 'later' has 'linear_num_key_heads'"));
  EXPECT_TRUE(
      complaint(R"({"model_type": "later", "hidden_size_per_layer_input": 256})")
          .starts_with("config.json#: model type 'later' has an embedding for every layer"));
  EXPECT_TRUE(complaint(R"({"model_type": "clip", "text_config": {"hidden_size": 512},
                            "vision_config": {}})")
                  .starts_with("config.json#: model type 'clip' is two encoders"));
  EXPECT_TRUE(complaint(R"({"_class_name": "UNet2DConditionModel", "sample_size": 64})")
                  .starts_with("config.json#: is a part of a diffusion model"));
  EXPECT_EQ(complaint(R"({"model_type": "switch", "is_encoder_decoder": true, "num_experts": 8})"),
            "config.json#: an encoder-decoder with experts is not supported");
  EXPECT_EQ(complaint(R"({"model_type": "albert", "num_hidden_groups": 3})"),
            "config.json#/num_hidden_groups: more than one set of shared weights is not supported");
}

}  // namespace
}  // namespace plait
