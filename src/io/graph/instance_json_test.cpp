#include "io/graph/instance_json.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "io/format/test_folder.h"

namespace plait {
namespace {

const std::string kGood =
    R"({"problem": {"name": "x", "nodes": {"intervals": [[0, 2], [1, 3]], "costs": [[1, 2], [3]],)"
    R"( "usages": [[4, 5], [6]]}, "edges": {"nodes": [[0, 1]], "costs": [[7, 1000000000000000000]]},)"
    R"( "usage_limit": 9}})";

class InstanceJson : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& bytes) {
    const std::string path = folder_.path(name);
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  // kGood with one piece replaced.
  std::string with(const std::string& piece, const std::string& by) {
    std::string text = kGood;
    const std::size_t at = text.find(piece);
    EXPECT_NE(at, text.npos) << piece;
    return file("bad.json", text.replace(at, piece.size(), by));
  }
  // What is said about a file, without the folder it lies in.
  std::string complaint(const std::string& path) {
    try {
      read_instance(path);
    } catch (const InputError& error) {
      return std::string(error.what()).substr(path.rfind('/') + 1);
    }
    return "read";
  }
  static std::string packed(const std::string& text) {
    z_stream state{};
    EXPECT_EQ(deflateInit2(&state, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(text.size() + 100, '\0');
    std::string in = text;
    state.next_in = reinterpret_cast<Bytef*>(in.data());
    state.avail_in = static_cast<uInt>(in.size());
    state.next_out = reinterpret_cast<Bytef*>(out.data());
    state.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&state, Z_FINISH), Z_STREAM_END);
    out.resize(state.total_out);
    deflateEnd(&state);
    return out;
  }
  samples::TestFolder folder_;
};

TEST_F(InstanceJson, ReadsWhatTheFileSays) {
  const solve::Instance instance = read_instance(file("good.json", kGood));
  EXPECT_EQ(instance.name, "x");
  EXPECT_EQ(instance.usage_limit, 9);
  ASSERT_EQ(instance.nodes.size(), 2U);
  EXPECT_EQ(instance.nodes[1].begin, 1);
  EXPECT_EQ(instance.nodes[1].end, 3);
  EXPECT_EQ(instance.nodes[0].cost, (std::vector<solve::Amount>{1, 2}));
  EXPECT_EQ(instance.nodes[0].usage, (std::vector<solve::Amount>{4, 5}));
  ASSERT_EQ(instance.edges.size(), 1U);
  EXPECT_EQ(instance.edges[0].cost, (std::vector<solve::Amount>{7, solve::kForbidden}));
}

TEST_F(InstanceJson, ReadsGzipInOneOrTwoParts) {
  EXPECT_EQ(complaint(file("good.gz", packed(kGood))), "read");
  const std::string two = packed(kGood.substr(0, 50)) + packed(kGood.substr(50));
  EXPECT_EQ(complaint(file("two.gz", two)), "read");
}

TEST_F(InstanceJson, RefusesGzipThatIsCutOrDamaged) {
  const std::string whole = packed(kGood);
  for (const std::size_t size : {std::size_t{2}, std::size_t{12}, whole.size() - 1})
    EXPECT_EQ(complaint(file("cut.gz", whole.substr(0, size))),
              "cut.gz: is truncated: its gzip data ends too early");
  std::string damaged = whole;
  damaged[damaged.size() - 6] = static_cast<char>(damaged[damaged.size() - 6] ^ 1);
  EXPECT_EQ(complaint(file("damaged.gz", damaged)),
            "damaged.gz: is damaged: its gzip data cannot be unpacked (incorrect data check)");
}

TEST_F(InstanceJson, NamesThePlaceOfEveryFault) {
  const std::string at = "bad.json#/problem";
  EXPECT_EQ(complaint(with("[4, 5]", "[4, -5]")),
            at + "/nodes/usages/0/1: must not be negative, is -5");
  EXPECT_EQ(complaint(with("[1, 2], [3]", "[1, 2.5], [3]")),
            at + "/nodes/costs/0/1: must be a whole number, is 2.5");
  EXPECT_EQ(complaint(with("[4, 5]", "[4]")),
            at + "/nodes/usages/0: has 1 numbers, but the node has 2 costs");
  EXPECT_EQ(complaint(with("[[4, 5], [6]]", "[[4, 5]]")),
            at + "/nodes/usages: has 1 lists, but nodes/intervals has 2");
  EXPECT_EQ(complaint(with("[[1, 2], [3]]", "[[], [3]]")),
            at + "/nodes/costs/0: is empty: a node needs a choice");
  EXPECT_EQ(complaint(with("[0, 2]", "[0]")),
            at + "/nodes/intervals/0: must have two numbers, has 1");
  EXPECT_EQ(complaint(with("[[0, 1]]", "[[0, 2]]")),
            at + "/edges/nodes/0: names node 2, but there are 2");
  EXPECT_EQ(complaint(with("[[0, 1]]", "[[-1, 1]]")),
            at + "/edges/nodes/0/0: must not be negative, is -1");
  EXPECT_EQ(complaint(with("[[7, 1000000000000000000]]", "[[7, 8, 9]]")),
            at + "/edges/costs/0: must have 2 numbers, 2 choices times 1, has 3");
  EXPECT_EQ(complaint(with("usage_limit", "usage_limits")),
            at + ": unknown key 'usage_limits' (did you mean 'usage_limit'?)");
  EXPECT_EQ(complaint(with("\"name\": \"x\"", "\"name\": 3")), at + "/name: must be a text");
  EXPECT_EQ(complaint(with("[4, 5]", "[4, \"5\"]")),
            at + "/nodes/usages/0/1: must be a whole number");
  EXPECT_EQ(complaint(with("[4, 5]", "[4, [5]]")),
            at + "/nodes/usages/0/1: must be a whole number");
  EXPECT_EQ(complaint(with("[4, 5]", "{}")),
            at + "/nodes/usages/0: must be a list of whole numbers");
  EXPECT_EQ(complaint(with("\"name\": \"x\"", "\"name\": \"x\", \"name\": \"y\"")),
            at + "/name: appears twice");
}

TEST_F(InstanceJson, RefusesNumbersThatDoNotAddUp) {
  EXPECT_EQ(complaint(with("[1, 2], [3]", "[1, 999999999999999999], [3]")),
            "bad.json#/problem/nodes/costs/1: makes the costs add up to 10^18, which means not "
            "allowed");
  EXPECT_EQ(complaint(with("[6]", "[9999999999999999999999]")),
            "bad.json#/problem/nodes/usages/1: makes the usages add up to more than 2^61");
  EXPECT_EQ(complaint(with("9}}", "4e18}}")),
            "bad.json#/problem/usage_limit: is too large: more than 2^61");
  EXPECT_EQ(complaint(with("[1, 2]", "[1, 1e999]")).substr(0, 30),
            "bad.json: not valid JSON at by");
}

TEST_F(InstanceJson, RefusesMoreThanTwoToThe31Combinations) {
  std::string zeros = "[0";  // 50,000 choices: 50,000 squared is 2.5e9
  for (int i = 1; i < 50'000; ++i) zeros += ",0";
  zeros += "]";
  const std::string lists = "[" + zeros + "," + zeros + "]";
  const std::string text = R"({"problem": {"nodes": {"intervals": [[0, 1], [0, 1]], "costs": )" +
                           lists + R"(, "usages": )" + lists +
                           R"(}, "edges": {"nodes": [[0, 1]], "costs": [[1]]}}})";
  EXPECT_EQ(complaint(file("wide.json", text)),
            "wide.json#/problem/edges/nodes/0: joins nodes with 50000 and 50000 choices: more than "
            "2^31 combinations");
}

TEST_F(InstanceJson, RefusesWhatIsNotAnInstance) {
  // The rest is the JSON library's own, and differs between its versions.
  EXPECT_TRUE(
      complaint(file("empty.json", "")).starts_with("empty.json: not valid JSON at byte 1: "));
  EXPECT_EQ(
      complaint(file("cut.json", "{")),
      "cut.json: not valid JSON at byte 2: syntax error while parsing object key - unexpected "
      "end of input; expected string literal");
  EXPECT_EQ(complaint(file("list.json", "[]")), "list.json#: must be an object");
  EXPECT_EQ(complaint(file("number.json", "3")), "number.json#: must be an object");
  EXPECT_EQ(complaint(file("none.json", "{}")), "none.json#: key 'problem' is missing");
  EXPECT_EQ(complaint(file("part.json", R"({"problem": {"nodes": {}}})")),
            "part.json#/problem/nodes: key 'intervals' is missing");
  EXPECT_EQ(complaint(file("deep.json", std::string(100'000, '['))),
            "deep.json#: must be an object");
  EXPECT_EQ(complaint(file("python.json", "import jax\n")).substr(0, 35),
            "python.json: not valid JSON at byte");
  EXPECT_EQ(complaint(with("[1, 2]", "[NaN, 2]")).substr(0, 32),
            "bad.json: not valid JSON at byte");
}

TEST_F(InstanceJson, WithoutALimitEverythingFits) {
  const solve::Instance instance = read_instance(with(", \"usage_limit\": 9", ""));
  EXPECT_EQ(solve::solve(instance, {}).cost, 1 + 3 + 7);
}

TEST_F(InstanceJson, WritesTheAnswer) {
  const solve::Instance instance = read_instance(with("\"usage_limit\": 9", "\"usage_limit\": 10"));
  EXPECT_EQ(
      solution_json(instance, solve::solve(instance, {})),
      "{\"name\": \"x\", \"cost\": 11, \"lower_bound\": 11, \"gap\": 0, \"choices\": [0, 0]}\n");
}

}  // namespace
}  // namespace plait
