#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/sample_complaint.h"
#include "io/model/huggingface/huggingface.h"

namespace plait {
namespace {

TransformerReading read(const std::string& members) {
  return read_huggingface(parse_json("config.json", "{" + members + "}"), std::nullopt);
}

double parameters(const std::string& members) {
  return build_transformer(read(members).config).parameters();
}

TEST(LaterFamilies, ModernBertHasTheParametersOfTheHubs) {
  // The file of ModernBERT-base. Token table 50368 x 768; 22 layers of 4 h^2 + 3 h x 1152 with two
  // norms of h (one in the first layer, another behind the embedding); a final norm; the head's
  // dense layer and norm, and its bias: 149,655,232.
  const std::string base =
      R"("model_type": "modernbert", "architectures": ["ModernBertForMaskedLM"],
         "hidden_size": 768, "intermediate_size": 1152, "num_hidden_layers": 22,
         "num_attention_heads": 12, "vocab_size": 50368, "hidden_activation": "gelu",
         "global_attn_every_n_layers": 3, "local_attention": 128, "max_position_embeddings": 8192,
         "classifier_bias": false, "decoder_bias": true, "norm_bias": false, "norm_eps": 1e-05,
         "global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "mlp_bias": false)";
  EXPECT_EQ(parameters(base), 50368.0 * 768 + 22 * (4.0 * 768 * 768 + 3.0 * 768 * 1152 + 2 * 768) +
                                  768 + 768 * 768 + 768 + 50368);
  EXPECT_EQ(parameters(base), 149'655'232);
  const TransformerConfig config = read(base).config;
  EXPECT_TRUE(config.unknown_keys.empty());
  EXPECT_EQ(config.window.size, 128);
  EXPECT_EQ(config.window.full, (std::vector<int>{0, 3, 6, 9, 12, 15, 18, 21}));
  EXPECT_FALSE(config.causal);
}

TEST(LaterFamilies, AnImageModelMayHaveAGatedMlp) {
  // DINOv2-giant: 40 layers of 4 h^2 + 3 h x 4096 with biases and two norms. Without its learnt
  // scales of layers and its mask, and with a classifier of two labels.
  const TransformerReading giant = read(
      R"("model_type": "dinov2", "hidden_size": 1536, "image_size": 518, "patch_size": 14,
         "mlp_ratio": 4, "num_attention_heads": 24, "num_hidden_layers": 40, "use_swiglu_ffn": true,
         "layer_norm_eps": 1e-06)");
  EXPECT_EQ(giant.config.ffn, 4096);
  EXPECT_TRUE(giant.config.gated);
  EXPECT_NEAR(build_transformer(giant.config).parameters(), 1'136'480'768, 2e6);
  EXPECT_EQ(giant.warnings[0],
            "model_type 'dinov2' is not known: assumed an image model like ViT, with a gated MLP");
}

TEST(LaterFamilies, EncodersSayWhatTheyHaveOfLaterYears) {
  const std::string sizes =
      R"("architectures": ["LaterForMaskedLM"], "vocab_size": 128256, "hidden_size": 768,
         "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072)";
  const TransformerReading gated = read(
      R"("model_type": "eurobert", "rms_norm_eps": 1e-5, "hidden_act": "silu",
         "rope_theta": 250000, )" +
      sizes);
  EXPECT_EQ(gated.warnings[0],
            "model_type 'eurobert' is not known: assumed an encoder like BERT, with rotary "
            "positions, a gated MLP, RMS norm before each part");
  EXPECT_EQ(gated.config.positions, Positions::rotary);
  EXPECT_TRUE(gated.config.gated);
  EXPECT_FALSE(gated.config.qkv_bias);
  const TransformerReading turned =
      read(R"("model_type": "esm", "position_embedding_type": "rotary", )" + sizes);
  EXPECT_EQ(turned.config.position_rows, 0);
  EXPECT_FALSE(turned.config.gated);
}

TEST(LaterFamilies, SizesMayHaveGpt2sNames) {
  const TransformerReading reading =
      read(R"("model_type": "nomic_bert", "architectures": ["NomicBertForMaskedLM"],
              "activation_function": "swiglu", "n_embd": 768, "n_head": 12, "n_inner": 3072,
              "n_layer": 12, "n_positions": 2048, "vocab_size": 30528, "rotary_emb_fraction": 1)");
  EXPECT_EQ(reading.config.hidden, 768);
  EXPECT_EQ(reading.config.layers, 12);
  EXPECT_TRUE(reading.config.gated);
  EXPECT_EQ(reading.config.sequence, 2048);
}

const std::string kMixture =
    R"("model_type": "later", "vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 2,
       "num_attention_heads": 4, "intermediate_size": 96, "rms_norm_eps": 1e-6,
       "num_experts": 8, )";

TEST(LaterFamilies, ExpertsOfATokenAreSaidWithTheAssumption) {
  for (const char* key : {"num_experts_per_tok", "n_activated_experts", "moe_topk"}) {
    const TransformerReading reading = read(kMixture + fmt::format(R"("{}": 3)", key));
    EXPECT_EQ(reading.config.moe.top_k, 3) << key;
    EXPECT_NE(reading.warnings[0].find("8 experts of which a token visits 3"), std::string::npos);
    EXPECT_EQ(reading.warnings.size(), 1U) << key;
  }
}

TEST(LaterFamilies, KeysThatAreNotUsedAreNamedOfUnknownFamilies) {
  const TransformerReading reading =
      read(kMixture + R"("num_experts_per_tok": 3, "attn_gate": "sigmoid", "norm_topk_prob": true,
                         "routed_scaling_factor": 2.5)");
  EXPECT_EQ(reading.config.unknown_keys, std::vector<std::string>{"attn_gate"});
}

TEST(LaterFamilies, AListOfEqualNumbersIsANumber) {
  const TransformerReading reading =
      read(kMixture + R"("moe_topk": [3, 3], "moe_intermediate_size": [40, 40],
                         "num_shared_expert": [1, 1], "n_group": false)");
  EXPECT_EQ(reading.config.moe.top_k, 3);
  EXPECT_EQ(reading.config.moe.ffn, 40);
  EXPECT_EQ(reading.config.moe.shared_ffn, 40);
  EXPECT_EQ(samples::complaint([&] { read(kMixture + R"("moe_topk": [3, 4])"); }),
            "config.json#/moe_topk: differs from layer to layer (3 and 4), which is not predicted: "
            "write the number that most layers have");
}

TEST(LaterFamilies, RoutersOfGlmAreUnderstood) {
  EXPECT_TRUE(read(R"("model_type": "glm4_moe", "norm_topk_prob": true, "topk_group": 1,
                      "n_group": 1, "routed_scaling_factor": 1.0)")
                  .config.unknown_keys.empty());
}

}  // namespace
}  // namespace plait
