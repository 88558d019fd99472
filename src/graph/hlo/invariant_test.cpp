#include <gtest/gtest.h>

#include "graph/hlo/program.h"
#include "graph/hlo/read_text.h"

namespace plait::graph {
namespace {

// Five trips of x = <result of body>, which sees i, x, and w as the loop hands it on.
Program five_trips(const std::string& body) {
  static Module module;
  module = read_hlo(
      "HloModule m\n\nyes {\n  p = f32[4] parameter(0)\n  ROOT yes_e = f32[4] exponential(p)\n}\n\n"
      "no {\n  p = f32[4] parameter(0)\n  ROOT no_t = f32[4] tanh(p)\n}\n\n"
      "body {\n  p = (s32[], f32[4], f32[4]) parameter(0)\n"
      "  i = s32[] get-tuple-element(p), index=0\n  x = f32[4] get-tuple-element(p), index=1\n"
      "  w = f32[4] get-tuple-element(p), index=2\n  one = s32[] constant(1)\n"
      "  n = s32[] add(i, one)\n" +
          body +
          "  ROOT t = (s32[], f32[4], f32[4]) tuple(n, y, w)\n}\n\n"
          "condition {\n  p = (s32[], f32[4], f32[4]) parameter(0)\n"
          "  i = s32[] get-tuple-element(p), index=0\n  e = s32[] constant(5)\n"
          "  ROOT c = pred[] compare(i, e), direction=LT\n}\n\n"
          "ENTRY main {\n  x = f32[4] parameter(0)\n  w = f32[4] parameter(1)\n"
          "  z = s32[] constant(0)\n  t = (s32[], f32[4], f32[4]) tuple(z, x, w)\n"
          "  l = (s32[], f32[4], f32[4]) while(t), condition=condition, body=body\n"
          "  ROOT r = f32[4] get-tuple-element(l), index=1\n}\n",
      "step.hlo");
  return flatten(module);
}

double trips_of(const Program& program, std::string_view name) {
  for (int n = 0; n < static_cast<int>(program.nodes.size()); ++n)
    if (program.nodes[n].kind == NodeKind::op && program.nodes[n].source->name == name)
      return program.trips(n);
  return -1;
}

TEST(Invariant, WhatALoopChangesNothingOfRunsOnceBeforeIt) {
  const Program program = five_trips(
      "  a = f32[4] negate(w)\n  b = f32[4] exponential(a)\n  c = f32[4] multiply(b, x)\n"
      "  y = f32[4] add(c, b)\n");
  EXPECT_EQ(trips_of(program, "a"), 1);
  EXPECT_EQ(trips_of(program, "b"), 1);
  EXPECT_EQ(trips_of(program, "c"), 5);
  EXPECT_EQ(trips_of(program, "y"), 5);
  // Where an op stands is another thing.
  for (const Node& node : program.nodes)
    EXPECT_TRUE(node.kind != NodeKind::op || node.operands.empty() || node.loop == 0);
}

TEST(Invariant, ABarrierGivesAnewWhatItIsGivenBesideWhatChanges) {
  const auto behind = [](const std::string& given) {
    return five_trips("  g = (f32[4], f32[4]) tuple(" + given +
                      ", w)\n  o = (f32[4], f32[4]) opt-barrier(g)\n"
                      "  v = f32[4] get-tuple-element(o), index=1\n  a = f32[4] negate(v)\n"
                      "  y = f32[4] add(a, x)\n");
  };
  EXPECT_EQ(trips_of(behind("x"), "a"), 5);  // as jax.checkpoint writes it
  EXPECT_EQ(trips_of(behind("w"), "a"), 1);
}

TEST(Invariant, EffectsAndBranchesStay) {
  const Program program = five_trips(
      "  k = f32[4] custom-call(w), custom_call_target=\"print\", "
      "custom_call_has_side_effect=true\n"
      "  q = f32[4] custom-call(w), custom_call_target=\"pure\"\n"
      "  f = pred[] constant(true)\n  d = f32[4] conditional(f, w, w), "
      "true_computation=yes, false_computation=no\n"
      "  s = f32[4] add(k, q)\n  u = f32[4] add(s, d)\n  y = f32[4] add(u, x)\n");
  EXPECT_EQ(trips_of(program, "k"), 5);
  EXPECT_EQ(trips_of(program, "q"), 1);
  EXPECT_EQ(trips_of(program, "yes_e"), 5);
  EXPECT_EQ(trips_of(program, "s"), 5);
}

}  // namespace
}  // namespace plait::graph
