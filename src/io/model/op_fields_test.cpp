#include "io/model/op_fields.h"

#include <gtest/gtest.h>

namespace plait {
namespace {

Op read_back(const Op& op) {
  JsonObject object;
  write_special_fields(op, object);
  Op out;
  read_special_fields(parse_json("op", object.str()), out);
  return out;
}

TEST(OpFields, ReadBackAsTheyWere) {
  Op op;
  EXPECT_EQ(read_back(op), op);
  op.matrices = 3;
  op.branches = 2;
  for (bool Op::*field : {&Op::scale_in_fp32, &Op::shares_input, &Op::gated, &Op::combines_experts,
                          &Op::writes_scores, &Op::scores_in_16_bits, &Op::learnt_bias}) {
    op.*field = true;
    EXPECT_EQ(read_back(op), op);
  }
}

// An op of an older file, with its fields as they are named now.
Op named(Op op, double parts) {
  const JsonValue json =
      parse_json("op", parts == 1 ? "{}" : "{\"parts\": " + json_number(parts) + "}");
  name_old_fields(json, op);
  return op;
}

Op op_of(OpKind kind, Function function) {
  Op op;
  op.kind = kind;
  op.function = function;
  op.moved = 2;
  op.saved = 1;
  return op;
}

TEST(OpFields, PartsMeantFourThings) {
  EXPECT_EQ(named(op_of(OpKind::matmul, Function::other), 3).matrices, 3);
  EXPECT_EQ(named(op_of(OpKind::attention, Function::other), 3).matrices, 3);
  EXPECT_EQ(named(op_of(OpKind::elementwise, Function::add), 2).branches, 2);
  EXPECT_EQ(named(op_of(OpKind::elementwise, Function::add), 2).matrices, 1);
  EXPECT_TRUE(named(op_of(OpKind::norm, Function::rms_norm), 2).scale_in_fp32);
  EXPECT_TRUE(named(op_of(OpKind::norm, Function::layer_norm), 0).shares_input);
  EXPECT_FALSE(named(op_of(OpKind::norm, Function::layer_norm), 1).shares_input);
}

TEST(OpFields, GatesReadTwiceWhatTheyWrite) {
  Op op = op_of(OpKind::elementwise, Function::gelu);
  EXPECT_FALSE(named(op, 1).gated);  // reads 1 and keeps it, writes 1
  op.moved = 3;
  op.saved = 2;
  EXPECT_TRUE(named(op, 1).gated);
}

TEST(OpFields, AdditionsToScoresWereAFunctionOfAttention) {
  Op op = op_of(OpKind::attention, Function::add);
  op.count = op.kv_count = 8;
  const Op bloom = named(op, 1);  // concatenated, a key for each head
  EXPECT_TRUE(bloom.writes_scores && bloom.scores_in_16_bits && !bloom.learnt_bias);
  EXPECT_EQ(bloom.function, Function::other);
  const Op t5 = named(op, 3);
  EXPECT_TRUE(t5.writes_scores && !t5.scores_in_16_bits && t5.learnt_bias);
  op.kv_count = 1;
  const Op falcon = named(op, 1);
  EXPECT_TRUE(falcon.writes_scores && !falcon.scores_in_16_bits && !falcon.learnt_bias);
}

TEST(OpFields, OlderOpsAreKnownByPartsOrByAttentionThatAdds) {
  const JsonValue plain = parse_json("op", "{}");
  const JsonValue parts = parse_json("op", R"({"parts": 2})");
  EXPECT_FALSE(is_old_op(plain, op_of(OpKind::elementwise, Function::add)));
  EXPECT_TRUE(is_old_op(plain, op_of(OpKind::attention, Function::add)));
  EXPECT_TRUE(is_old_op(parts, op_of(OpKind::matmul, Function::other)));
}

}  // namespace
}  // namespace plait
