#include "graph/hlo/read_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "graph/hlo/attributes.h"
#include "graph/hlo/program.h"
#include "graph/hlo/write_text.h"
#include "source_tree.h"

namespace plait::graph {
namespace {

constexpr const char* kLoop = R"(HloModule counted, input_output_alias={ {0}: (0, {}, may-alias) }

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(f32[] %a, f32[] %b)
}

%double (x: f32[4,8]) -> f32[4,8] {
  %x = f32[4,8]{1,0} parameter(0)
  ROOT %y = f32[4,8]{1,0} add(%x, %x)
}

%body (arg: (s32[], f32[4,8], /*index=2*/f32[8])) -> (s32[], f32[4,8], f32[8]) {
  %arg = (s32[], f32[4,8]{1,0}, f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%arg), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %x = f32[4,8]{1,0} get-tuple-element(%arg), index=1
  %twice = f32[4,8]{1,0} call(%x), to_apply=%double
  %w = f32[8]{0} get-tuple-element(%arg), index=2
  ROOT %out = (s32[], f32[4,8]{1,0}, f32[8]{0}) tuple(%next, %twice, %w)
}

%cond (arg: (s32[], f32[4,8], f32[8])) -> pred[] {
  %arg = (s32[], f32[4,8]{1,0}, f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%arg), index=0
  %n = s32[] constant(12)
  ROOT %lt = pred[] compare(%i, %n), direction=LT
}

ENTRY %main (w: f32[8], x: f32[4,8]) -> (f32[8], f32[]) {
  x = f32[4,8]{1,0} parameter(1), sharding={devices=[2,1]<=[2]}
  w = f32[8]{0} parameter(0), metadata={op_name="params[\'w\']" source_line=3}
  zero = s32[] constant(0)
  start = (s32[], f32[4,8]{1,0}, f32[8]{0}) tuple(zero, x, w)
  loop = (s32[], f32[4,8]{1,0}, f32[8]{0}) while(start), condition=%cond, body=%body
  y = f32[4,8]{1,0} get-tuple-element(loop), index=1
  w2 = f32[8]{0} get-tuple-element(loop), index=2
  init = f32[] constant(-inf)
  total = f32[] reduce(y, init), dimensions={0,1}, to_apply=%add
  ROOT done = (f32[8]{0}, f32[]) tuple(w2,
      total)
}
)";

std::string message_of(const std::string& text) {
  try {
    const Module module = read_hlo(text, "step.hlo");
    flatten(module);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string main_of(const std::string& lines) {
  return "HloModule m\n\nENTRY main {\n  x = f32[4,8]{1,0} parameter(0)\n" + lines + "}\n";
}

TEST(ReadHlo, InstructionsMayStandOnOneLine) {
  const Module module = read_hlo(
      "HloModule m ENTRY main { x = f32[4] parameter(0), sharding={devices=[2]<=[2]} y = f32[4] "
      "parameter(1), metadata={op_name=\"y\"} ROOT z = f32[4] add(x, y) }",
      "line");
  ASSERT_EQ(module.entry_computation().instructions.size(), 3U);
  EXPECT_EQ(*module.entry_computation().instructions[0].attribute("sharding"),
            "{devices=[2]<=[2]}");
}

TEST(ReadHlo, WrittenTextReadsAsTheSameText) {
  const std::string once = write_hlo(read_hlo(kLoop, "a"));
  EXPECT_EQ(write_hlo(read_hlo(once, "b")), once);
  EXPECT_NE(once.find("sharding={devices=[2,1]<=[2]}"), std::string::npos);
  EXPECT_NE(once.find("constant(-inf)"), std::string::npos);
}

TEST(ReadHlo, ParametersAreKnownByNumberNotByOrder) {
  const Module module = read_hlo(kLoop, "a");
  const Computation& entry = module.entry_computation();
  ASSERT_EQ(entry.parameters.size(), 2u);
  EXPECT_EQ(entry.instructions[entry.parameters[0]].name, "w");
  EXPECT_EQ(entry.instructions[entry.parameters[1]].name, "x");
  EXPECT_EQ(op_name(entry.instructions[entry.parameters[0]]), "params[\\'w\\']");
}

TEST(Flatten, ALoopCountsItsTripsAndPassesOnWhatItDoesNotChange) {
  const Module module = read_hlo(kLoop, "a");
  const Program program = flatten(module);
  ASSERT_EQ(program.loops.size(), 1u);
  EXPECT_EQ(program.loops[0].trips, 12);  // from 0 by 1 while below 12
  // w goes through the loop unchanged: the result is the argument itself.
  EXPECT_EQ(program.results[0], program.nodes[program.arguments[0]].outputs[0]);
  ASSERT_EQ(program.donated.size(), 1u);
  EXPECT_EQ(program.donated[0], std::make_pair(0, 0));
  for (const Node& node : program.nodes) EXPECT_FALSE(node.is("call"));
}

TEST(Flatten, KnownTripCountOfTheCompilerIsTaken) {
  std::string text = kLoop;
  const std::string loop = "body=%body\n";
  text.replace(text.find(loop), loop.size(),
               "body=%body, backend_config={\"known_trip_count\":{\"n\":\"7\"}}\n");
  const Module module = read_hlo(text, "a");
  EXPECT_EQ(flatten(module).loops[0].trips, 7);
}

TEST(WriteHlo, APartIsAModuleOfItsOwn) {
  const Module module = read_hlo(kLoop, "a");
  const Computation& entry = module.entry_computation();
  std::vector<int> chosen;
  for (int i = 0; i < static_cast<int>(entry.instructions.size()); ++i)
    if (entry.instructions[i].name == "total" || entry.instructions[i].name == "init")
      chosen.push_back(i);
  const std::string text = write_hlo(part_of(module, module.entry, chosen));
  const Module part = read_hlo(text, "part");
  ASSERT_EQ(part.computations.size(), 2u);  // the reduction's and the entry
  const Computation& made = part.entry_computation();
  ASSERT_EQ(made.parameters.size(), 1u);
  EXPECT_EQ(made.instructions[made.parameters[0]].name, "y");
  EXPECT_EQ(made.instructions[made.root].name, "total");
}

TEST(ReadHlo, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(message_of("import jax\n\ndef f(x): pass\n").substr(0, 43),
            "step.hlo:1:1: this is Python, not HLO: trac");
  EXPECT_NE(message_of("module @jit_f {\n func.func public @main() }").find("StableHLO"),
            std::string::npos);
  EXPECT_EQ(message_of(main_of("  y = f32[4,8]{1,0} add(x, z)\n")),
            "step.hlo:5:28: operand z is not defined before it is used");
  EXPECT_EQ(message_of("HloModule m\n\nENTRY main {\n  x = f32[4"),
            "step.hlo:4:12: the text ends after a dimension: it is cut off");
  EXPECT_NE(message_of("HloModule m\n\nENTRY main {\n  x = f32[4] parameter(0)\n").find("cut off"),
            std::string::npos);
  EXPECT_NE(message_of("HloModule m\n").find("no computation"), std::string::npos);
  EXPECT_NE(message_of("").find("not HLO"), std::string::npos);
  const std::string bytes =
      "these are bytes, not HLO text: StableHLO as bytes, HLO as protobuf (.pb) and exported "
      "functions become text with plait.jax.to_hlo_text";
  EXPECT_EQ(message_of("ML\xEFR\rStableHLO"), "step.hlo:1:1: " + bytes);
  EXPECT_EQ(message_of(std::string("\n\4step\x12\0\0", 8)), "step.hlo:2:1: " + bytes);
}

TEST(ReadHlo, WhatTheProgramIsAndGivesMustBeMarked) {
  EXPECT_EQ(message_of("HloModule m\n\nmain {\n  ROOT x = f32[4] parameter(0)\n}\n"),
            "step.hlo:6:1: no computation is marked ENTRY: the text is cut off");
  EXPECT_EQ(message_of("HloModule m\n\nENTRY main {\n  x = f32[4] parameter(0)\n}\n"),
            "step.hlo:5:1: no instruction of computation main is marked ROOT: the text is cut off");
}

TEST(Flatten, AnAliasNamesAResultAndAParameter) {
  const auto message = [](const std::string& alias) {
    return message_of("HloModule m, input_output_alias={ " + alias +
                      " }\n\nENTRY main {\n  x = f32[4] parameter(0)\n"
                      "  ROOT r = (f32[4], f32[4]) tuple(x, x)\n}\n");
  };
  EXPECT_EQ(message("{0}: (0, {}, may-alias), {1}: (0, {}, may-alias)"), "");
  EXPECT_EQ(message("{2}: (0, {}, may-alias)"),
            "step.hlo:1:33: input_output_alias names {2}, which is not an array of the result "
            "(f32[4], f32[4])");
  EXPECT_EQ(message("{0}: (1, {}, may-alias)"),
            "step.hlo:1:33: input_output_alias names (1, {}), which is not an array of the "
            "parameters");
  EXPECT_EQ(message("{0}: (0, {3}, may-alias)"),
            "step.hlo:1:33: input_output_alias names (0, {3}), which is not an array of the "
            "parameters");
}

TEST(Flatten, UsesBehindABarrierAreToldFromThoseBeforeIt) {
  const Module module = read_hlo(
      "HloModule m\n\nENTRY main {\n  x = f32[4] parameter(0)\n  a = f32[4] negate(x)\n"
      "  b = f32[4] opt-barrier(x)\n  c = f32[4] negate(b)\n  d = f32[4] opt-barrier(b)\n"
      "  e = f32[4] negate(d)\n  f = f32[4] opt-barrier(x)\n  g = f32[4] negate(f)\n"
      "  ROOT r = (f32[4], f32[4], f32[4], f32[4]) tuple(a, c, e, g)\n}\n",
      "step.hlo");
  const Program program = flatten(module);
  std::vector<int> barriers;
  for (const int result : program.results) {
    const int node = program.values[result].node;
    EXPECT_EQ(program.nodes[node].operands.front(), program.nodes[program.arguments[0]].outputs[0]);
    barriers.push_back(program.barrier(node, 0));
  }
  EXPECT_EQ(barriers, (std::vector<int>{-1, 0, 0, 2}));  // the first of a chain counts
  EXPECT_EQ(program.nodes.size(), 5U);
}

TEST(Flatten, ABarrierInsideOfALoopThatHandsAValueThroughDoesNotCount) {
  const Module module = read_hlo(
      "HloModule m\n\nbody {\n  p = (s32[], f32[4], f32[4]) parameter(0)\n"
      "  i = s32[] get-tuple-element(p), index=0\n  x = f32[4] get-tuple-element(p), index=1\n"
      "  w = f32[4] get-tuple-element(p), index=2\n  v = f32[4] opt-barrier(w)\n"
      "  one = s32[] constant(1)\n  n = s32[] add(i, one)\n  y = f32[4] add(x, v)\n"
      "  ROOT t = (s32[], f32[4], f32[4]) tuple(n, y, v)\n}\n\n"
      "condition {\n  p = (s32[], f32[4], f32[4]) parameter(0)\n"
      "  i = s32[] get-tuple-element(p), index=0\n  e = s32[] constant(5)\n"
      "  ROOT c = pred[] compare(i, e), direction=LT\n}\n\n"
      "ENTRY main {\n  x = f32[4] parameter(0)\n  w = f32[4] parameter(1)\n  z = s32[] "
      "constant(0)\n"
      "  t = (s32[], f32[4], f32[4]) tuple(z, x, w)\n"
      "  l = (s32[], f32[4], f32[4]) while(t), condition=condition, body=body\n"
      "  ROOT r = f32[4] get-tuple-element(l), index=1\n}\n",
      "step.hlo");
  const Program program = flatten(module);
  const int w = program.nodes[program.arguments[1]].outputs[0];
  int uses = 0;
  for (int n = 0; n < static_cast<int>(program.nodes.size()); ++n)
    for (int i = 0; i < static_cast<int>(program.nodes[n].operands.size()); ++i)
      if (program.nodes[n].operands[i] == w) {
        ++uses;
        EXPECT_EQ(program.barrier(n, i), -1);
      }
  EXPECT_EQ(uses, 1);  // by the sum in the body: the loop only hands it through
  EXPECT_EQ(program.loops.front().trips, 5);
}

TEST(Flatten, RecursionIsRefused) {
  const std::string text =
      "HloModule m\n\nf {\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f\n}\n\n"
      "ENTRY main {\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f\n}\n";
  EXPECT_EQ(message_of(text), "step.hlo:5:8: computation f calls itself: HLO has no recursion");
}

TEST(Flatten, CallsThatDoubleTheProgramAgainAndAgainAreRefused) {
  std::string text =
      "HloModule m\n\nf0 {\n  x = f32[] parameter(0)\n  ROOT y = f32[] add(x, x)\n}\n";
  for (int i = 1; i < 40; ++i) {
    const std::string inner = "f" + std::to_string(i - 1);
    text += "f" + std::to_string(i) +
            " {\n  x = f32[] parameter(0)\n  a = f32[] call(x), to_apply=" + inner +
            "\n  ROOT b = f32[] call(a), to_apply=" + inner + "\n}\n";
  }
  text += "ENTRY main {\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=f39\n}\n";
  EXPECT_NE(message_of(text).find("longer than"), std::string::npos);
}

TEST(ReadHlo, SharedProgramsReadAndComeBackTheSame) {
  const std::filesystem::path folder = source_dir() + "/../shared/data/hlo";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << folder << " is absent";
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(file.path());
    std::stringstream text;
    text << in.rdbuf();
    const Module module = read_hlo(text.str(), file.path());
    const std::string once = write_hlo(module);
    const Module again = read_hlo(once, "again");
    EXPECT_EQ(write_hlo(again), once) << file.path();
    EXPECT_EQ(flatten(again).nodes.size(), flatten(module).nodes.size());
    ++files;
  }
  EXPECT_GT(files, 10);
}

}  // namespace
}  // namespace plait::graph
