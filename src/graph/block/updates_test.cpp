#include "graph/block/updates.h"

#include <gtest/gtest.h>

#include "graph/analysis.h"
#include "graph/sample_programs.h"

namespace plait::graph {
namespace {

std::string names_of(const Analysis& analysis) {
  std::string names;
  for (std::size_t n = 0; n < analysis.program.nodes.size(); ++n) {
    const Node& node = analysis.program.nodes[n];
    if (analysis.updates.of_node[n] != 0 && !node.is("broadcast") && !node.is("constant"))
      names += (names.empty() ? "" : " ") + node.source->name;
  }
  return names;
}

TEST(Updates, BeginWithTheGradientAndHoldTheState) {
  const Analysis analysis = analyze(samples::momentum_step(64, 32), "momentum");
  // The weight itself is used by the forward pass, and x and the loss are not of an update.
  EXPECT_EQ(names_of(analysis), "m gradient less new_m new_w");
  EXPECT_EQ(analysis.updates.is_state, (std::vector<char>{0, 1, 0}));
}

TEST(Updates, AWeightIsFollowedToItsUsesWithoutWhatMakesMoreOfIt) {
  std::string text = samples::momentum_step(64, 32);
  const std::size_t at = text.find("dx = ");
  text.insert(
      at,
      "half = bf16[32,32] convert(w)\n  row = bf16[1,32] slice(half), slice={[0:1],[0:32]}\n  "
      "wide = bf16[64,1,32] broadcast(row), dimensions={1,2}\n  "
      "long = f32[64,32] reshape(wide)\n  ");
  text.replace(text.find("dot(ones, w)"), 12, "dot(long, w)");
  const Analysis analysis = analyze(text, "momentum");
  std::string names;
  for (std::size_t n = 0; n < analysis.program.nodes.size(); ++n)
    if (analysis.updates.of_weight[n] != 0) names += analysis.program.nodes[n].source->name + " ";
  EXPECT_EQ(names, "w half row ");
}

TEST(Updates, EndWhereAResultDoesNotTakeAnArgumentsPlace) {
  std::string text = samples::momentum_step(64, 32);
  const std::size_t from = text.find(", input_output_alias");
  text.erase(from, text.find('\n') - from);
  EXPECT_EQ(names_of(analyze(text, "momentum")), "");
}

TEST(Updates, AProductInsideOfTheUpdateWantsAllOfTheGradient) {
  std::string text = samples::momentum_step(64, 32);
  const std::size_t at = text.find("less, gradient)");
  text.replace(at, 15,
               "less, gradient)\n  square = f32[32,32] dot(new_m, new_m), "
               "lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  text.replace(text.find("subtract(w, new_m)"), 18, "subtract(w, square)");
  // The momentum is used by a product: it and what it is made of are whole on every device.
  EXPECT_EQ(names_of(analyze(text, "momentum")), "square new_w");
}

}  // namespace
}  // namespace plait::graph
