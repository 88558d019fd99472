#include "io/model/megatron_flags.h"

#include <gtest/gtest.h>

#include "base/sample_complaint.h"
#include "io/model/load_model.h"

namespace plait {
namespace {

const std::string k345m =
    "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 "
    "--max-position-embeddings 1024 ";

TransformerReading read(const std::string& text) {
  return read_megatron_flags("run.sh", text, std::nullopt);
}

double parameters(const std::string& text) {
  return build_transformer(read(text).config).parameters();
}

std::string complaint(const std::string& text) {
  return samples::complaint([&] { read(text); });
}

TEST(MegatronFlags, GptHasMegatronsPaddedVocabulary) {
  // GPT-2 medium's 354,823,168 and 47 more rows of 1024: 50257 padded to 50304.
  EXPECT_EQ(parameters(k345m + "--vocab-size 50257"), 354'823'168 + 47 * 1024);
  EXPECT_EQ(parameters(k345m + "--vocab-size 50257 --make-vocab-size-divisible-by 1"), 354'823'168);
}

TEST(MegatronFlags, LlamaFlagsGiveLlamasCount) {
  EXPECT_EQ(parameters("--num-layers 32 --hidden-size 4096 --ffn-hidden-size 11008 "
                       "--num-attention-heads 32 --seq-length 4096 --swiglu "
                       "--untie-embeddings-and-output-weights --normalization RMSNorm "
                       "--disable-bias-linear --position-embedding-type rope --vocab-size 32000 "
                       "--attention-dropout 0 --hidden-dropout 0"),
            6'738'415'616);
}

TEST(MegatronFlags, GroupedExpertsGiveMixtralsCount) {
  EXPECT_EQ(parameters("--num_layers=32 --hidden_size=4096 --ffn_hidden_size=14336 "
                       "--num_attention_heads=32 --group_query_attention --num_query_groups=8 "
                       "--swiglu --untie_embeddings_and_output_weights --normalization=RMSNorm "
                       "--disable_bias_linear --use_rotary_position_embeddings --seq_length=4096 "
                       "--vocab_size=32000 --num_experts=8 --moe_router_topk=2"),
            46'702'792'704);
}

TEST(MegatronFlags, LayerPatternAndLatentAttentionGiveDeepSeekV2LitesCount) {
  EXPECT_EQ(parameters("--num-layers 27 --hidden-size 2048 --ffn-hidden-size 10944 "
                       "--num-attention-heads 16 --seq-length 4096 --swiglu --vocab-size 102400 "
                       "--untie-embeddings-and-output-weights --normalization RMSNorm "
                       "--disable-bias-linear --position-embedding-type rope --num-experts 64 "
                       "--moe-layer-freq '([0]*1+[1]*26)' --moe-ffn-hidden-size 1408 "
                       "--moe-router-topk 6 --moe-shared-expert-intermediate-size 2816 "
                       "--multi-latent-attention --kv-lora-rank 512 --qk-head-dim 128 "
                       "--qk-pos-emb-head-dim 64 --v-head-dim 128"),
            15'706'484'224);
}

// As is_layer_window_attention() of megatron/core/transformer/utils.py has it.
TEST(MegatronFlags, WindowsAreThoseBeforeThePosition) {
  const auto window = [](const std::string& flags) { return read(k345m + flags).config.window; };
  EXPECT_EQ(window("--window-size 255,0"), (AttentionWindow{256, {}}));
  EXPECT_EQ(window("--window-size '(255, 0)' --window-attn-skip-freq 6"),
            (AttentionWindow{256, {5, 11, 17, 23}}));
  EXPECT_EQ(window("--window-size 255,0 --window-attn-skip-freq '[1]*22+[0]*2'"),
            (AttentionWindow{256, {22, 23}}));
  EXPECT_EQ(window("--window-size -1,-1"), AttentionWindow{});
  EXPECT_EQ(complaint(k345m + "--window-size 256"),
            "run.sh --window-size: must be two whole numbers from -1 on, as in 4095,0; is '256'");
  EXPECT_EQ(complaint(k345m + "--window-size 255,0 --window-attn-skip-freq [1]*3"),
            "run.sh --window-attn-skip-freq: must describe 24 layers");
}

TEST(MegatronFlags, ScriptsVariablesAreFilledIn) {
  const TransformerReading reading = read(R"(#!/bin/bash
# --num-layers 99 in a comment does not count
LAYERS=24
HIDDEN="1024"
ARGS=(
    --num-layers ${LAYERS} \
    --hidden-size $HIDDEN
    --num-attention-heads ${HEADS:-16})
TRAINING="--micro-batch-size 4 --seq-length 512 --lr 0.00015"
torchrun pretrain_gpt.py ${ARGS[@]} ${TRAINING}
)");
  EXPECT_EQ(reading.config.layers, 24);
  EXPECT_EQ(reading.config.hidden, 1024);
  EXPECT_EQ(reading.config.heads, 16);
  EXPECT_EQ(reading.config.sequence, 512);
}

TEST(MegatronFlags, GatedMlpDefaultsToTwoThirds) {
  // int(4 * 1024 * 2 / 3 / 64) * 64 = 2688.
  EXPECT_EQ(read(k345m + "--swiglu").config.ffn, 2688);
}

TEST(MegatronFlags, WhatIsAssumedIsSaid) {
  const TransformerReading reading =
      read("--num-layers 2 --hidden-size 64 --num-attention-heads 4");
  ASSERT_EQ(reading.warnings.size(), 3u);
  EXPECT_EQ(reading.warnings[0], "no --seq-length: 2048 is assumed");
  EXPECT_EQ(reading.warnings[1], "no --vocab-size: 50257 (the GPT-2 tokenizer's) is assumed");
  EXPECT_EQ(reading.warnings[2], "the vocabulary of 50257 is padded to 50304, a multiple of 128");
}

TEST(MegatronFlags, AVocabularyThatIsNotSaidIsThatOfTheTokenizer) {
  const auto words = [](const std::string& text) {
    return read(text + k345m + " --make-vocab-size-divisible-by 1").config.vocabulary;
  };
  EXPECT_EQ(words("pretrain_gpt.py "), 50257);
  EXPECT_EQ(words("pretrain_gpt.py --tokenizer-type HuggingFaceTokenizer --tokenizer-model "
                  "meta-llama/Meta-Llama-3-8B "),
            128256);
  const std::string unknown = "--tokenizer-type SFTTokenizer --tokenizer-model /data/own ";
  const TransformerReading reading = read(unknown + k345m);
  EXPECT_EQ(reading.warnings.at(0),
            "no --vocab-size, and nothing says how many words its SFTTokenizer has: 50257 (the "
            "GPT-2 tokenizer's) is assumed");
  EXPECT_EQ(words("pretrain_gpt.py --tokenizer-type Llama2Tokenizer "), 32000);
  EXPECT_EQ(words("pretrain_bert.py "), 30522);
  EXPECT_EQ(words("pretrain_t5.py --tokenizer-type BertWordPieceCase --vocab-extra-ids 100 "),
            29096);
}

TEST(MegatronFlags, BertIsBidirectionalWithTwoHeads) {
  const TransformerReading reading = read("pretrain_bert.py " + k345m + "--vocab-size 30592");
  EXPECT_FALSE(reading.config.causal);
  EXPECT_EQ(reading.config.head, Head::pretraining);
}

TEST(MegatronFlags, BadValuesNameTheirFlag) {
  EXPECT_EQ(complaint("--num-layers 24"), "run.sh: --hidden-size is missing");
  EXPECT_EQ(complaint("--num-layers two --hidden-size 64 --num-attention-heads 4"),
            "run.sh --num-layers: must be a whole number from 1 to 268435456, is 'two'");
  EXPECT_EQ(
      complaint("--num-layers $N --hidden-size 64 --num-attention-heads 4"),
      "run.sh --num-layers: is '$N', which nothing sets: put a line 'N=' with its value at the "
      "top");
  EXPECT_EQ(
      complaint("--num-layers $((N/2)) --hidden-size 64 --num-attention-heads 4"),
      "run.sh --num-layers: is '$((N/2))', which is not known before it runs: write the value "
      "itself");
  EXPECT_EQ(complaint("--num-layers 2 --hidden-size 64 --num-attention-heads 5"),
            "run.sh: heads (5) must divide hidden (64)");
  EXPECT_EQ(complaint(k345m + "--normalization BatchNorm"),
            "run.sh --normalization: unknown value 'BatchNorm', must be one of LayerNorm, RMSNorm");
  EXPECT_EQ(complaint(k345m + "--num-experts 8 --moe-layer-freq '[1]*23'"),
            "run.sh --moe-layer-freq: must describe 24 layers");
  EXPECT_EQ(complaint(k345m + "--hidden-dropout 2"),
            "run.sh --hidden-dropout: must be a number from 0 to 1, is '2'");
}

}  // namespace
}  // namespace plait
