#include "model/transformer.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

constexpr double s = 1024, h = 768;

TransformerConfig gpt2() {
  return {.name = "gpt2", .vocabulary = 50257, .layers = 12, .hidden = 768, .heads = 12};
}

TransformerConfig llama() {
  TransformerConfig c{.vocabulary = 1000, .layers = 2, .hidden = 64, .heads = 8, .kv_heads = 2};
  c.sequence = 128;
  c.ffn = 100;
  c.gated = true;
  c.qkv_bias = c.projection_bias = c.mlp_bias = c.tied = c.dropout = false;
  c.norm = NormKind::rms;
  c.positions = Positions::rotary;
  return c;
}

LayerKind kind(const Model& model, const std::string& name) {
  for (const LayerKind& k : model.kinds)
    if (k.name == name) return k;
  ADD_FAILURE() << "no " << name;
  return model.kinds[0];
}

Op op(const LayerKind& layer, const std::string& name) {
  for (const Op& o : layer.ops)
    if (o.name == name) return o;
  ADD_FAILURE() << "no " << name;
  return layer.ops[0];
}

double sum(const LayerKind& layer, double Op::*field) {
  double total = 0;
  for (const Op& o : layer.ops) total += o.*field;
  return total;
}

// Bytes of one sample in 16 bits that a block keeps, on every device or cut.
double saved_bytes(const LayerKind& layer, bool sharded) {
  double total = 0;
  for (const Op& o : layer.ops)
    if (o.saved_is_sharded == sharded) total += 2 * o.saved + o.saved_mask.value;
  return total;
}

TEST(Transformer, GptBlockSavesWhatKorthikantiCounts) {
  // Eq. 2 of arXiv 2205.05198: s*b*h*(10 + 24/t), the term of plain attention left out.
  const Model model = build_transformer(gpt2());
  EXPECT_EQ(saved_bytes(kind(model, "decoder"), false), 10 * s * h);
  EXPECT_EQ(saved_bytes(kind(model, "decoder"), true), 24 * s * h);
}

TEST(Transformer, BertBlockSavesAsMuchAsGpts) {
  TransformerConfig c = gpt2();
  c.norm_place = NormPlace::after_adding;
  c.causal = false;
  const LayerKind encoder = kind(build_transformer(c), "encoder");
  EXPECT_EQ(saved_bytes(encoder, false), 10 * s * h);
  EXPECT_EQ(saved_bytes(encoder, true), 24 * s * h);
}

TEST(Transformer, WithoutDropoutNoMaskIsKept) {
  TransformerConfig c = gpt2();
  c.dropout = false;
  const Model model = build_transformer(c);
  EXPECT_EQ(saved_bytes(kind(model, "decoder"), false), 8 * s * h);
}

TEST(Transformer, GptBlockWorksAsMuchAsItsMatricesSay) {
  // 2 flops for each of 12 h^2 weights and token, and 4 s^2 h for scores and weighted sum.
  const Model model = build_transformer(gpt2());
  EXPECT_EQ(kind(model, "decoder").forward().value, 24 * s * h * h + 4 * s * s * h);
  EXPECT_EQ(kind(model, "head").forward().value, 2 * s * h * 50257);
}

TEST(Transformer, GptBlockReducesTwiceForwardAndTwiceBackward) {
  const Model model = build_transformer(gpt2());
  const LayerKind block = kind(model, "decoder");
  EXPECT_EQ(op(block, "attention.projection").forward_reduce, s * h);
  EXPECT_EQ(op(block, "mlp.down").forward_reduce, s * h);
  EXPECT_EQ(sum(block, &Op::forward_reduce), 2 * s * h);
  EXPECT_EQ(op(block, "attention.qkv").backward_reduce, s * h);
  EXPECT_EQ(op(block, "mlp.up").backward_reduce, s * h);
  EXPECT_EQ(sum(block, &Op::backward_reduce), 2 * s * h);
  // Vocabulary-parallel embedding; maximum, sum and target logit of the loss.
  EXPECT_EQ(sum(kind(model, "embedding"), &Op::forward_reduce), s * h);
  EXPECT_EQ(sum(kind(model, "head"), &Op::forward_reduce), 3 * s);
  EXPECT_EQ(sum(kind(model, "head"), &Op::backward_reduce), s * h);
}

TEST(Transformer, ParallelBlockReducesOnce) {
  TransformerConfig c = gpt2();
  c.parallel = c.shared_norm = true;
  const LayerKind block = kind(build_transformer(c), "decoder");
  EXPECT_EQ(sum(block, &Op::forward_reduce), s * h);
  EXPECT_EQ(sum(block, &Op::backward_reduce), s * h);
}

TEST(Transformer, TiedHeadOwnsNothingAndPointsAtTheLogits) {
  const Model model = build_transformer(gpt2());
  EXPECT_EQ(model.parameters(), 124'439'808);
  ASSERT_EQ(model.ties.size(), 1u);
  EXPECT_EQ(model.ties[0].parameters, 50257 * h);
  EXPECT_EQ(model.ties[0].second, 13);
  EXPECT_EQ(model.unit(13).ops[model.ties[0].second_op].name, "head.logits");
}

TEST(Transformer, OpGranularityKeepsTheSumsAndTheTie) {
  const Model model = build_transformer(gpt2());
  const Model fine = at_op_granularity(model);
  EXPECT_EQ(fine.parameters(), model.parameters());
  EXPECT_EQ(fine.forward(), model.forward());
  EXPECT_EQ(fine.unit(fine.ties[0].second).name, "head.head.logits");
  EXPECT_EQ(fine.unit(fine.ties[0].first).name, "embedding.embedding.tokens");
}

TEST(Transformer, ResidualCrossesACutInsideABlock) {
  const Model model = build_transformer(gpt2());
  const LayerKind block = kind(model, "decoder");
  EXPECT_EQ(op(block, "attention.norm").boundary, 2 * s * h);
  EXPECT_EQ(op(block, "attention.qkv").boundary, (3 + 1) * s * h);
  EXPECT_EQ(op(block, "attention.residual").boundary, s * h);
  EXPECT_EQ(op(block, "mlp.up").boundary, (4 + 1) * s * h);
  EXPECT_EQ(block.output, s * h);
}

TEST(Transformer, GroupedKeysAndGatedMlpHaveTheirOwnSizes) {
  const Model model = build_transformer(llama());
  const LayerKind block = kind(model, "decoder");
  // 8 query heads and 2 + 2 key and value heads of 8 features.
  EXPECT_EQ(op(block, "attention.qkv").columns, 12 * 8);
  EXPECT_EQ(op(block, "attention.core").kv_count, 2);
  EXPECT_EQ(op(block, "attention.core").saved, 128 * 12 * 8);
  EXPECT_EQ(op(block, "mlp.up").columns, 200);
  EXPECT_EQ(op(block, "mlp.activation").saved, 128 * 200);
  EXPECT_EQ(op(block, "mlp.down").inner, 100);
}

TEST(Transformer, ExpertsAreSentTheirTokensAndBack) {
  TransformerConfig c = llama();
  c.moe = {.experts = 16, .top_k = 2, .ffn = 40, .shared_ffn = 80, .first_dense = 1};
  const Model model = build_transformer(c);
  EXPECT_EQ(model.unit(1).name, "decoder");
  EXPECT_EQ(model.unit(2).name, "moe_decoder");
  const LayerKind block = kind(model, "moe_decoder");
  // Dispatch and combine: 128 tokens x 2 experts x 64 features each.
  EXPECT_EQ(sum(block, &Op::expert_exchange), 2 * 128 * 2 * 64);
  const Op up = op(block, "experts.up");
  EXPECT_EQ(up.parameters, 16 * 64 * 80);
  EXPECT_EQ(up.rows * up.count, 128 * 2);
  EXPECT_EQ(up.forward.value, 2.0 * 128 * 2 * 64 * 80);
  // Router 64 x 16, experts 16 x 3 x 64 x 40, shared 3 x 64 x 80, attention and two norms.
  const double attention = 64 * 96 + 64 * 64 + 2 * 64;
  EXPECT_EQ(block.parameters(), 64 * 16 + 16 * 3 * 64 * 40 + 3 * 64 * 80 + attention);
  EXPECT_EQ(block.output, 128 * 64);
}

TEST(Transformer, LatentAttentionWorksOnUnequalHeads) {
  TransformerConfig c = llama();
  c.mla = {.q_rank = 32, .kv_rank = 24, .nope_dim = 12, .rope_dim = 8, .value_dim = 16};
  const LayerKind block = kind(build_transformer(c), "decoder");
  const Op core = op(block, "attention.core");
  // Scores over 12 + 8 features, weighted sum over 16.
  EXPECT_EQ(core.forward.value, 2.0 * 128 * 128 * 8 * (20 + 16));
  EXPECT_EQ(core.forward.value, 4 * core.rows * core.columns * core.inner * core.count);
  EXPECT_EQ(op(block, "attention.kv_down").columns, 32);
  EXPECT_EQ(op(block, "attention.projection").inner, 8 * 16);
  EXPECT_EQ(block.output, 128 * 64);
}

TEST(Transformer, DecoderUnitsHandOnTheEncodersOutput) {
  TransformerConfig c = gpt2();
  c.positions = Positions::relative;
  c.causal = false;
  c.decoder_layers = 4;
  c.decoder_sequence = 256;
  const Model model = build_transformer(c);
  EXPECT_EQ(model.unit_count(), 1 + 12 + 1 + 4 + 1);
  EXPECT_EQ(kind(model, "encoder").output, s * h);
  EXPECT_EQ(kind(model, "decoder_embedding").output, (s + 256) * h);
  EXPECT_EQ(kind(model, "decoder").output, (s + 256) * h);
  EXPECT_EQ(op(kind(model, "decoder"), "cross.core").columns, s);
  EXPECT_EQ(model.ties.size(), 2u);
}

TEST(Transformer, SharedLayersWorkEachButCountOnce) {
  TransformerConfig config = gpt2();
  const Model own = build_transformer(config);
  config.shared_layers = true;
  const Model shared = build_transformer(config);
  const double block = kind(own, "decoder").parameters();
  EXPECT_EQ(shared.parameters(), own.parameters() - 11 * block);
  EXPECT_EQ(shared.forward(), own.forward());
  EXPECT_EQ(shared.unit_count(), own.unit_count());
  // Each block is tied to the one before it, op by op; and the head to the embedding.
  double tied_to_first = 0;
  for (const Tie& tie : shared.ties) {
    EXPECT_TRUE(tie.first == 0 || tie.second == tie.first + 1);
    if (tie.first == 1) tied_to_first += tie.parameters;
  }
  EXPECT_EQ(tied_to_first, block);
}

TEST(Transformer, DecoderOfItsOwnSizesHasItsOwnPositionsAndNorm) {
  // BART: both stacks look up tokens in one table, positions in a table each, and normalise them.
  TransformerConfig c{.vocabulary = 100, .layers = 2, .hidden = 64, .heads = 8};
  c.sequence = 32;
  c.ffn = 50;
  c.decoder_layers = 3;
  c.decoder_heads = 4;
  c.decoder_ffn = 70;
  c.embedding_norm = true;
  c.final_norm = false;
  const Model model = build_transformer(c);
  EXPECT_EQ(op(kind(model, "encoder"), "attention.core").count, 8);
  EXPECT_EQ(op(kind(model, "decoder"), "cross.core").count, 4);
  EXPECT_EQ(op(kind(model, "decoder"), "mlp.up").columns, 70);
  EXPECT_EQ(kind(model, "decoder_embedding").parameters(), 32 * 64 + 2 * 64);
}

TEST(Transformer, LossKeepsItsSoftmaxInFourBytes) {
  const Op loss = op(kind(build_transformer(gpt2()), "head"), "head.loss");
  EXPECT_EQ(loss.saved_mask.value, 4 * s * 50257);
  EXPECT_TRUE(loss.saved_is_sharded);
}

TEST(Transformer, FaultsAreNamed) {
  TransformerConfig c = gpt2();
  EXPECT_EQ(fault_of(c), "");
  c.hidden = 770;
  EXPECT_EQ(fault_of(c), "heads (12) must divide hidden (770)");
  c = gpt2();
  c.layers = 1'000'000'000;
  EXPECT_EQ(fault_of(c), "layers must be from 1 to 100000, is 1000000000");
  c = gpt2();
  c.kv_heads = 5;
  EXPECT_EQ(fault_of(c), "key-value heads (5) must divide heads (12)");
  c = llama();
  c.moe = {.experts = 4, .top_k = 5, .ffn = 8};
  EXPECT_EQ(fault_of(c), "experts per token must be from 1 to 4, is 5");
}

}  // namespace
}  // namespace plait
