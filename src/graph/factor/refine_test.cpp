#include "graph/factor/refine.h"

#include <gtest/gtest.h>

#include "graph/hlo/read_text.h"

namespace plait::graph {
namespace {

std::vector<std::string> refined(const std::string& lines) {
  const Module module = read_hlo("HloModule m\n\nENTRY main {\n" + lines + "}\n", "m");
  const Program program = flatten(module);
  std::vector<std::string> warnings;
  std::vector<Rule> rules = rules_of(program, warnings);
  refine(program, rules);
  std::vector<std::string> out;
  for (const Rule& rule : rules) out.push_back(text_of(rule));
  return out;
}

TEST(Refine, HeadsCutTheColumnsOfTheProductThatMakesThem) {
  // The product's 12 columns become 3 heads of 4; so do the weight's.
  const auto rules = refined(
      "  x = f32[8,5] parameter(0)\n  w = f32[5,12] parameter(1)\n"
      "  y = f32[8,12] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "  ROOT h = f32[8,3,4] reshape(y)\n");
  EXPECT_EQ(rules[1], "()->([i,jk]) {i=5, j=3, k=4}");
  EXPECT_EQ(rules[2], "([j,i],[i,kl])->([j,kl]) {i=5, j=8, k=3, l=4} reduction={i}");
}

TEST(Refine, CutsThatDoNotNestLeaveTheLaterOpUndivided) {
  // 6 = 2 x 3 comes first; 3 x 2 does not nest in it.
  const auto rules = refined(
      "  x = f32[6] parameter(0)\n  a = f32[2,3] reshape(x)\n  b = f32[3,2] reshape(x)\n"
      "  ROOT t = (f32[2,3], f32[3,2]) tuple(a, b)\n");
  EXPECT_EQ(rules[1], "([ij])->([i,j]) {i=2, j=3}");
  EXPECT_EQ(rules[2].find("replication={"),
            rules[2].size() - std::string("replication={i,j,k,l}").size());
}

}  // namespace
}  // namespace plait::graph
