#include "graph/hlo/invariant.h"

#include <algorithm>
#include <array>

#include "graph/hlo/attributes.h"

namespace plait::graph {
namespace {

// Does something besides giving its results, or gives others each time.
bool has_effects(const Instruction& it) {
  constexpr std::array<std::string_view, 6> kOpcodes{"rng",  "infeed",    "outfeed",
                                                     "send", "send-done", "recv"};
  if (std::ranges::find(kOpcodes, it.opcode) != kOpcodes.end() || it.opcode == "recv-done")
    return true;
  const std::string* effects = it.attribute("custom_call_has_side_effect");
  return effects != nullptr && *effects == "true";
}

class Finder {
 public:
  Finder(Program& program, const HandedOn& handed)
      : program_(program), handed_(handed), home_(program.values.size(), -1) {
    for (const Loop& loop : program.loops)
      depth_.push_back(loop.parent < 0 ? 1 : depth_[loop.parent] + 1);
  }

  void run() {
    for (int n = 0; n < static_cast<int>(program_.nodes.size()); ++n) {
      Node& node = program_.nodes[n];
      const auto barrier = handed_.barriers.find(n);
      const std::vector<int>& given =
          barrier == handed_.barriers.end() ? node.operands : barrier->second;
      const bool moves =
          node.kind == NodeKind::op && handed_.stays[n] == 0 && !has_effects(*node.source);
      node.runs_in = moves ? innermost(given) : node.loop;
      for (const int value : node.outputs) {
        const auto [from, by] = handed_.from[value];
        // A loop that only hands a value on changes nothing of it.
        home_[value] = from != value && by < 0 ? home_[from] : node.runs_in;
      }
    }
  }

 private:
  int depth(int loop) const { return loop < 0 ? 0 : depth_[loop]; }

  int innermost(const std::vector<int>& values) const {
    int loop = -1;
    for (const int value : values)
      if (depth(home_[value]) > depth(loop)) loop = home_[value];
    return loop;
  }

  Program& program_;
  const HandedOn& handed_;
  std::vector<int> home_;  // of each value: the loop that gives it anew in each trip
  std::vector<int> depth_;
};

}  // namespace

void find_invariant(Program& program, const HandedOn& handed) { Finder(program, handed).run(); }

}  // namespace plait::graph
