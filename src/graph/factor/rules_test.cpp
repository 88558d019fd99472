#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "graph/factor/rule.h"
#include "graph/hlo/read_text.h"
#include "source_tree.h"

namespace plait::graph {
namespace {

// The rule of the last instruction of a program whose parameters are given as types.
std::string rule_of(const std::vector<std::string>& parameters, const std::string& last) {
  std::string text = "HloModule m\n\nENTRY main {\n";
  for (std::size_t i = 0; i < parameters.size(); ++i)
    text += "  p" + std::to_string(i) + " = " + parameters[i] + " parameter(" + std::to_string(i) +
            ")\n";
  text += "  ROOT r = " + last + "\n}\n";
  const Module module = read_hlo(text, "m");
  const Program program = flatten(module);
  std::vector<std::string> warnings;
  const std::string rule = text_of(rules_of(program, warnings).back());
  return warnings.empty() ? rule : rule + " unknown";
}

// The expected lines follow the einsum notation of Shardy's op sharding rules.
TEST(Rules, DotSharesBatchFreeAndContractedDimensions) {
  EXPECT_EQ(rule_of({"f32[4,2]", "f32[2,8]"},
                    "f32[4,8] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
            "([j,i],[i,k])->([j,k]) {i=2, j=4, k=8} reduction={i}");
  EXPECT_EQ(rule_of({"f32[3,4,2]", "f32[2,3,8]"},
                    "f32[3,4,8] dot(p0, p1), lhs_batch_dims={0}, rhs_batch_dims={1}, "
                    "lhs_contracting_dims={2}, rhs_contracting_dims={0}"),
            "([i,k,j],[j,i,l])->([i,k,l]) {i=3, j=2, k=4, l=8} reduction={j}");
}

// The positions of a convolution of one dimension: what the second row of its operand gives.
std::vector<Halo> halos_of(const std::string& operand, const std::string& kernel,
                           const std::string& result, const std::string& window) {
  const Module module =
      read_hlo("HloModule m\n\nENTRY main {\n  x = " + operand + " parameter(0)\n  w = " + kernel +
                   " parameter(1)\n  ROOT r = " + result + " convolution(x, w), window={" + window +
                   "}, dim_labels=b0f_0io->b0f\n}\n",
               "m");
  const Program program = flatten(module);
  std::vector<std::string> warnings;
  return rules_of(program, warnings).back().halos;
}

// The same numbers as in programs that XLA's partitioner compiled (rows of its
// collective-permutes).
TEST(Rules, WindowsReachIntoNeighbours) {
  const auto halo = [](std::int64_t before, std::int64_t behind) {
    return std::vector<Halo>{{0, 1, before, behind}};
  };
  const std::string x = "f32[4,32,8]";
  // 3 positions, the middle one its own; 5 positions.
  EXPECT_EQ(halos_of(x, "f32[3,8,16]", "f32[4,32,16]", "size=3 pad=1_1"), halo(1, 1));
  EXPECT_EQ(halos_of(x, "f32[5,8,16]", "f32[4,32,16]", "size=5 pad=2_2"), halo(2, 2));
  EXPECT_TRUE(halos_of(x, "f32[1,8,16]", "f32[4,32,16]", "size=1").empty());
  // Stride 2: results 0 1 2 begin at 0 2 4 and end at 2 4 6: a part of 0 .. 3 wants 4 as well.
  EXPECT_EQ(halos_of(x, "f32[3,8,16]", "f32[4,16,16]", "size=3 stride=2 pad=0_1"), halo(0, 1));
  EXPECT_EQ(halos_of(x, "f32[5,8,16]", "f32[4,16,16]", "size=5 stride=2 pad=1_2"), halo(1, 2));
  EXPECT_TRUE(halos_of(x, "f32[1,8,16]", "f32[4,16,16]", "size=1 stride=2 pad=0_-1").empty());
  // Its gradient: operands two apart.
  EXPECT_EQ(halos_of("f32[4,16,8]", "f32[3,8,16]", "f32[4,32,16]", "size=3 pad=2_1 lhs_dilate=2"),
            halo(1, 0));
  EXPECT_EQ(halos_of("f32[4,16,8]", "f32[5,8,16]", "f32[4,32,16]", "size=5 pad=3_2 lhs_dilate=2"),
            halo(1, 1));
  // The gradient of a kernel: the window is as large as the image.
  EXPECT_EQ(halos_of(x, "f32[32,8,16]", "f32[4,3,16]", "size=32 pad=1_1"), halo(1, 1));
  EXPECT_EQ(halos_of(x, "f32[16,8,16]", "f32[4,5,16]", "size=16 pad=1_2 rhs_dilate=2"), halo(1, 2));
  // Without padding the parts do not meet those of the result: not divided.
  EXPECT_TRUE(halos_of(x, "f32[3,8,16]", "f32[4,30,16]", "size=3").empty());
}

TEST(Rules, ReshapeSharesWhatTheMajorEndsHaveInCommon) {
  EXPECT_EQ(rule_of({"f32[6,4]"}, "f32[6,2,2] reshape(p0)"), "([i,jk])->([i,j,k]) {i=6, j=2, k=2}");
  EXPECT_EQ(rule_of({"f32[2,4,8]"}, "f32[8,8] reshape(p0)"), "([i,j,k])->([ij,k]) {i=2, j=4, k=8}");
  EXPECT_EQ(rule_of({"f32[4,1,6]"}, "f32[1,4,6] reshape(p0)"), "([i,1,j])->([1,i,j]) {i=4, j=6}");
  // 4 and 8 share 4; 6 and the remaining 2 share 2; 3 is left on both sides.
  EXPECT_EQ(rule_of({"f32[4,6]"}, "f32[8,3] reshape(p0)"), "([i,jk])->([ij,k]) {i=4, j=2, k=3}");
  // 6 = 2 x 3 and 4 = 2 x 2: behind the shared 2, 3 and 2 cannot be aligned.
  EXPECT_EQ(rule_of({"f32[6,2]"}, "f32[4,3] reshape(p0)"),
            "([ij,m])->([ik,l]) {i=2, j=3, k=2, l=3, m=2} replication={j,k,l,m}");
}

TEST(Rules, GatherAndScatterAreProductsWithAOneHotMatrix) {
  EXPECT_EQ(rule_of({"f32[100,16]", "s32[4,8,1]"},
                    "f32[4,8,16] gather(p0, p1), offset_dims={2}, collapsed_slice_dims={0}, "
                    "start_index_map={0}, index_vector_dim=2, slice_sizes={1,16}"),
            "([k,l],[i,j,1])->([i,j,l]) {i=4, j=8, k=100, l=16} reduction={k}");
  EXPECT_EQ(rule_of({"f32[100,16]", "s32[4,8,1]", "f32[4,8,16]"},
                    "f32[100,16] scatter(p0, p1, p2), update_window_dims={2}, "
                    "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                    "index_vector_dim=2"),
            "([k,l],[i,j,1],[i,j,l])->([k,l]) {i=4, j=8, k=100, l=16} reduction={i,j}");
}

TEST(Rules, ConvolutionSumsInputChannelsAndKeepsItsWindow) {
  EXPECT_EQ(rule_of({"f32[8,3,32,32]", "f32[16,3,3,3]"},
                    "f32[8,16,32,32] convolution(p0, p1), window={size=3x3 pad=1_1x1_1}, "
                    "dim_labels=bf01_oi01->bf01"),
            "([i,k,l,m],[j,k,n,o])->([i,j,l,m]) {i=8, j=16, k=3, l=32, m=32, n=3, o=3} "
            "reduction={k} replication={n,o}");
  // Depthwise: the groups are a factor of input, kernel and result.
  EXPECT_EQ(rule_of({"f32[8,6,5,5]", "f32[6,1,1,1]"},
                    "f32[8,6,5,5] convolution(p0, p1), window={size=1x1}, "
                    "dim_labels=bf01_oi01->bf01, feature_group_count=6"),
            "([j,i,k,l],[i,1,1,1])->([j,i,k,l]) {i=6, j=8, k=5, l=5}");
  // Its weight gradient: groups of the batch (here the channels) become features.
  EXPECT_EQ(rule_of({"f32[8,6,5,5]", "f32[8,6,5,5]"},
                    "f32[1,6,1,1] convolution(p0, p1), window={size=5x5}, "
                    "dim_labels=fb01_io01->bf01, batch_group_count=6"),
            "([j,i,k,l],[j,i,m,n])->([1,i,1,1]) {i=6, j=8, k=5, l=5, m=5, n=5} reduction={j} "
            "replication={k,l,m,n}");
}

TEST(Rules, OtherOpsSayWhichDimensionsPass) {
  EXPECT_EQ(rule_of({"f32[4,8]"}, "f32[8,4] transpose(p0), dimensions={1,0}"),
            "([j,i])->([i,j]) {i=8, j=4}");
  EXPECT_EQ(rule_of({"f32[4,8]"}, "f32[4,2,8] broadcast(p0), dimensions={0,2}"),
            "([i,j])->([i,k,j]) {i=4, j=8, k=2}");
  EXPECT_EQ(rule_of({"f32[4,8]", "f32[]"}, "f32[4] reduce(p0, p1), dimensions={1}"),
            "([i,j],[])->([i]) {i=4, j=8} reduction={j}");
  EXPECT_EQ(rule_of({"f32[4,8]"}, "f32[4,2] slice(p0), slice={[0:4], [2:4]}"),
            "([i,j])->([i,k]) {i=4, j=8, k=2} replication={j,k}");
  EXPECT_EQ(rule_of({"f32[8,4]", "f32[1,4]", "s32[]", "s32[]"},
                    "f32[8,4] dynamic-update-slice(p0, p1, p2, p3)"),
            "([i,j],[1,j],[],[])->([i,j]) {i=8, j=4} replication={i}");
  EXPECT_EQ(rule_of({"f32[4,8]"}, "(f32[4,2], s32[4,2]) topk(p0), k=2, largest=true"),
            "([i,j])->([k,l],[m,n]) {i=4, j=8, k=4, l=2, m=4, n=2} replication={i,j,k,l,m,n}");
  EXPECT_EQ(rule_of({"f32[4]"}, "f32[4] custom-call(p0), custom_call_target=\"mystery\""),
            "([i])->([j]) {i=4, j=4} replication={i,j} unknown");
}

// What XLA's partitioner does not divide is not planned as divided.
TEST(Rules, WhatDependsOnTheOrderOrIsGroupedIsNotDivided) {
  // A kernel of 2 groups of 3 input channels each: every device convolves all of it.
  EXPECT_EQ(rule_of({"f32[8,6,5,5]", "f32[4,3,1,1]"},
                    "f32[8,4,5,5] convolution(p0, p1), window={size=1x1}, "
                    "dim_labels=bf01_oi01->bf01, feature_group_count=2"),
            "([j,il,m,n],[ik,l,1,1])->([j,ik,m,n]) {i=2, j=8, k=2, l=3, m=5, n=5} "
            "replication={i,j,k,l}");
  EXPECT_EQ(rule_of({"f32[4,8]"}, "f32[4,5] fft(p0), fft_type=RFFT, fft_length={8}"),
            "([i,j])->([k,l]) {i=4, j=8, k=4, l=5} replication={i,j,k,l}");
  const std::string text =
      "HloModule m\n\nlast {\n  a = f32[] parameter(0)\n  ROOT b = f32[] parameter(1)\n}\n\n"
      "ENTRY main {\n  p0 = f32[100,16] parameter(0)\n  p1 = s32[4,1] parameter(1)\n"
      "  p2 = f32[4,16] parameter(2)\n  ROOT r = f32[100,16] scatter(p0, p1, p2), "
      "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
      "index_vector_dim=1, to_apply=last\n}\n";
  const Module module = read_hlo(text, "m");
  const Program program = flatten(module);
  std::vector<std::string> warnings;
  // Added updates could be divided (a reduction); of updates that are written the last one stays.
  EXPECT_EQ(text_of(rules_of(program, warnings).back()),
            "([j,k],[i,1],[i,k])->([j,k]) {i=4, j=100, k=16} replication={i}");
}

TEST(Rules, ShapesThatContradictTheirOpAreRefused) {
  const auto message = [](const std::vector<std::string>& parameters, const std::string& last) {
    try {
      rule_of(parameters, last);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message({"f32[4,2]", "f32[3,8]"},
                    "f32[4,8] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
            "m:6:8: the shape of r contradicts dot: dimension 0 is 3, and must be 2");
  EXPECT_EQ(
      message({"f32[4]", "f32[5]"}, "f32[4] add(p0, p1)"),
      "m:6:8: the shape of r contradicts add: operand 1 has other dimensions than the result");
  for (const char* labels : {"bf01_oi01->2bf01", "bf01_oi01->bf0", "bf01_2oi01->bf01"})
    EXPECT_EQ(
        message({"f32[1,4,8,8]", "f32[4,4,3,3]"},
                std::string("f32[1,4,8,8] convolution(p0, p1), window={size=3x3 pad=1_1x1_1}, "
                            "dim_labels=") +
                    labels),
        "m:6:8: the shape of r contradicts convolution: dim_labels do not fit its operands");
  EXPECT_NE(message({"f32[4]"}, "f32[5] reshape(p0)"), "");
  EXPECT_NE(message({"f32[4]"}, "f32[4,5] broadcast(p0), dimensions={7}"), "");
  EXPECT_NE(message({"f32[4]", "f32[4]"}, "f32[7] concatenate(p0, p1), dimensions={0}"), "");
}

TEST(Rules, SharedProgramsHaveARuleForEveryOpButForeignCustomCalls) {
  const std::filesystem::path folder = source_dir() + "/../shared/data/hlo";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(file.path());
    std::stringstream text;
    text << in.rdbuf();
    const Module module = read_hlo(text.str(), file.path());
    const Program program = flatten(module);
    std::vector<std::string> warnings;
    rules_of(program, warnings);
    for (const std::string& warning : warnings)
      EXPECT_NE(warning.find("te_fused_attn"), std::string::npos) << warning;
  }
}

}  // namespace
}  // namespace plait::graph
