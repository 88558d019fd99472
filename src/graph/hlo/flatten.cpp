#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "graph/hlo/attributes.h"
#include "graph/hlo/drop_unused.h"
#include "graph/hlo/invariant.h"
#include "graph/hlo/program.h"
#include "graph/hlo/trip_count.h"

namespace plait::graph {
namespace {

constexpr int kDeepestCall = 500;
constexpr std::size_t kMostNodes = 1'000'000;

// The values of an instruction's leaves, left to right.
using Leaves = std::vector<int>;

bool is_inlined(const Instruction& it) {
  return (it.opcode == "call" || it.opcode == "fusion" || it.opcode == "async-start") &&
         !it.called.empty();
}

int called_in_role(const Module& module, const Instruction& it, std::string_view role) {
  for (const Called& called : it.called)
    if (called.role == role) return called.computation;
  throw InputError(module.place(it), it.opcode + " " + it.name + " has no " + std::string(role));
}

// How many instructions a computation has once its calls are resolved, so that a program that calls
// make too long is refused before it is.
class LengthCheck {
 public:
  explicit LengthCheck(const Module& module)
      : module_(module), length_(module.computations.size(), -1) {}

  double length(int index, int depth) {
    if (length_[index] >= 0 || depth > kDeepestCall) return std::max(length_[index], 0.0);
    length_[index] = 0;  // recursion is found when it is inlined
    double sum = 0;
    for (const Instruction& it : module_.computations[index].instructions) {
      sum += 1;
      if (!is_inlined(it) && it.opcode != "while" && it.opcode != "conditional") continue;
      for (const Called& called : it.called) sum += length(called.computation, depth + 1);
      if (sum > static_cast<double>(kMostNodes))
        throw InputError(module_.place(it), "calls make the program longer than " +
                                                std::to_string(kMostNodes) + " instructions");
    }
    return length_[index] = sum;
  }

 private:
  const Module& module_;
  std::vector<double> length_;
};

class Flattener {
 public:
  explicit Flattener(const Module& module) : module_(module) { program_.module = &module; }

  Program run() {
    const Computation& entry = module_.entry_computation();
    std::vector<Leaves> arguments;
    for (const int parameter : entry.parameters)
      arguments.push_back(make_arguments(entry.instructions[parameter]));
    program_.results = inline_computation(module_.entry, arguments, entry.instructions.front());
    find_invariant(program_, {handed_, barrier_given_, stays_});
    resolve_aliases();
    find_donated(arguments);
    return std::move(program_);
  }

 private:
  int new_value(const Shape& shape, int node, int output) {
    program_.values.push_back({&shape, node, output});
    alias_.push_back(static_cast<int>(alias_.size()));
    handed_.push_back({alias_.back(), -1});
    return static_cast<int>(program_.values.size()) - 1;
  }

  int new_node(NodeKind kind, const Instruction& it, std::vector<int> operands) {
    if (program_.nodes.size() >= kMostNodes)
      throw InputError(module_.place(it), "calls make the program longer than " +
                                              std::to_string(kMostNodes) + " instructions");
    Node node;
    node.kind = kind;
    node.source = &it;
    node.computation = computation_;
    node.operands = std::move(operands);
    node.loop = loop_;
    stays_.push_back(branches_ > 0 ? 1 : 0);
    program_.nodes.push_back(std::move(node));
    return static_cast<int>(program_.nodes.size()) - 1;
  }

  int add_output(int node, const Shape& shape) {
    const int value = new_value(shape, node, static_cast<int>(program_.nodes[node].outputs.size()));
    program_.nodes[node].outputs.push_back(value);
    return value;
  }

  Leaves make_arguments(const Instruction& parameter) {
    Leaves leaves;
    for (const Shape* leaf : leaves_of(parameter.shape)) {
      const int node = new_node(NodeKind::argument, parameter, {});
      program_.nodes[node].argument = static_cast<int>(program_.arguments.size());
      program_.arguments.push_back(node);
      leaves.push_back(add_output(node, *leaf));
    }
    return leaves;
  }

  Leaves inline_computation(int index, const std::vector<Leaves>& arguments,
                            const Instruction& caller) {
    const Computation& computation = module_.computations[index];
    if (std::ranges::find(stack_, index) != stack_.end())
      throw InputError(module_.place(caller),
                       "computation " + computation.name + " calls itself: HLO has no recursion");
    if (stack_.size() > kDeepestCall)
      throw InputError(module_.place(caller),
                       "calls are nested more than " + std::to_string(kDeepestCall) + " deep");
    if (arguments.size() != computation.parameters.size())
      throw InputError(module_.place(caller),
                       caller.opcode + " " + caller.name + " passes " +
                           std::to_string(arguments.size()) + " operands to " + computation.name +
                           ", which has " + std::to_string(computation.parameters.size()) +
                           " parameters");
    stack_.push_back(index);
    const int outer = computation_;
    computation_ = index;
    std::vector<Leaves> made(computation.instructions.size());
    for (std::size_t i = 0; i < computation.instructions.size(); ++i) {
      const Instruction& it = computation.instructions[i];
      if (it.parameter >= 0) {
        made[i] = arguments[it.parameter];
        check_leaves(caller, it, made[i]);
      } else {
        made[i] = instruction(it, made);
      }
    }
    computation_ = outer;
    stack_.pop_back();
    return std::move(made[computation.root]);
  }

  void check_leaves(const Instruction& caller, const Instruction& wanted, const Leaves& given) {
    const auto leaves = leaves_of(wanted.shape);
    bool same = leaves.size() == given.size();
    for (std::size_t i = 0; same && i < leaves.size(); ++i) {
      const Shape& shape = *program_.values[given[i]].shape;
      same = shape.dims == leaves[i]->dims && shape.type == leaves[i]->type;
    }
    if (!same)
      throw InputError(module_.place(caller),
                       caller.opcode + " " + caller.name + " gives another type than " +
                           text_of(wanted.shape, false) + " of " + wanted.name);
  }

  Leaves instruction(const Instruction& it, const std::vector<Leaves>& made) {
    if (it.opcode == "tuple") {
      Leaves all;
      for (const int operand : it.operands)
        all.insert(all.end(), made[operand].begin(), made[operand].end());
      return check_result(it, std::move(all));
    }
    if (it.opcode == "get-tuple-element") return element(it, made);
    if (it.opcode == "while") return loop(it, made);
    if (it.opcode == "conditional") return conditional(it, made);
    if (is_inlined(it)) {
      std::vector<Leaves> arguments;
      for (const int operand : it.operands) arguments.push_back(made[operand]);
      return inline_computation(it.called.front().computation, arguments, it);
    }
    if (it.opcode == "opt-barrier" || it.opcode == "optimization-barrier" ||
        it.opcode == "async-done" || it.opcode == "async-update" || it.opcode == "copy-done" ||
        it.opcode == "domain") {
      if (it.operands.size() == 1 &&
          static_cast<int>(made[it.operands[0]].size()) == leaf_count(it.shape))
        return it.opcode.ends_with("barrier") ? barrier(it, made[it.operands[0]])
                                              : made[it.operands[0]];
    }
    std::vector<int> operands;
    for (const int operand : it.operands)
      operands.insert(operands.end(), made[operand].begin(), made[operand].end());
    const int node = new_node(NodeKind::op, it, std::move(operands));
    Leaves outputs;
    for (const Shape* leaf : leaves_of(it.shape)) outputs.push_back(add_output(node, *leaf));
    return outputs;
  }

  // The same values, under names by which uses behind the barrier are told from those before it.
  Leaves barrier(const Instruction& it, const Leaves& given) {
    const int node = new_node(NodeKind::op, it, {});
    barrier_given_[node] = given;
    Leaves behind;
    for (const int value : given) {
      behind.push_back(add_output(node, *program_.values[value].shape));
      alias_[behind.back()] = value;
      handed_[behind.back()] = {value, barriers_};
    }
    ++barriers_;
    return behind;
  }

  Leaves check_result(const Instruction& it, Leaves leaves) {
    check_leaves(it, it, leaves);
    return leaves;
  }

  Leaves element(const Instruction& it, const std::vector<Leaves>& made) {
    const auto index = static_cast<std::size_t>(integer_or(it, "index", 0));
    if (it.operands.size() != 1) wrong_operands(it, 1);
    const Instruction& tuple = module_.computations[computation_].instructions[it.operands.front()];
    if (!tuple.shape.is_tuple() || index >= tuple.shape.parts.size())
      throw InputError(module_.place(it), "index " + std::to_string(index) + " is not one of " +
                                              text_of(tuple.shape, false));
    std::size_t from = 0;
    for (std::size_t i = 0; i < index; ++i) from += leaf_count(tuple.shape.parts[i]);
    const Leaves& all = made[it.operands.front()];
    const std::size_t count = leaf_count(tuple.shape.parts[index]);
    if (from + count > all.size()) wrong_operands(it, 1);
    return check_result(it, Leaves(all.begin() + from, all.begin() + from + count));
  }

  [[noreturn]] void wrong_operands(const Instruction& it, int wanted) const {
    throw InputError(module_.place(it), it.opcode + " " + it.name + " must have " +
                                            std::to_string(wanted) + " operand" +
                                            (wanted == 1 ? "" : "s"));
  }

  Leaves loop(const Instruction& it, const std::vector<Leaves>& made) {
    if (it.operands.size() != 1) wrong_operands(it, 1);
    const Leaves& before = made[it.operands.front()];
    check_leaves(it, it, before);
    const int id = static_cast<int>(program_.loops.size());
    program_.loops.push_back({loop_, 1, false, &it});
    const int outer = loop_;
    loop_ = id;
    Leaves carried;
    for (const int value : before) {
      const int node = new_node(NodeKind::loop_enter, it, {value});
      program_.nodes[node].argument = static_cast<int>(carried.size());
      carried.push_back(add_output(node, *program_.values[value].shape));
    }
    const Leaves after = inline_computation(called_in_role(module_, it, "body"), {carried}, it);
    check_leaves(it, it, after);
    const Leaves go_on =
        inline_computation(called_in_role(module_, it, "condition"), {carried}, it);
    loop_ = outer;
    Leaves result;
    for (std::size_t i = 0; i < carried.size(); ++i) {
      if (resolved(after[i]) == carried[i]) {
        alias_[carried[i]] = before[i];
        handed_[carried[i]] = {before[i], -1};
        result.push_back(before[i]);
        continue;
      }
      program_.nodes[program_.values[carried[i]].node].operands.push_back(after[i]);
      const int node = new_node(NodeKind::loop_exit, it, {after[i]});
      program_.nodes[node].argument = static_cast<int>(i);
      result.push_back(add_output(node, *program_.values[after[i]].shape));
    }
    set_trips(it, id, go_on.empty() ? -1 : go_on.front());
    return result;
  }

  void set_trips(const Instruction& it, int id, int condition) {
    Program& p = program_;
    const std::optional<double> trips =
        trip_count(p, it, condition, [&](int value) { return resolved(value); });
    p.loops[id].known = trips.has_value();
    p.loops[id].trips = trips.value_or(1);
    if (!trips)
      p.warnings.push_back(module_.place(it) + ": the number of trips of " + it.name +
                           " is not known; it is planned as one");
  }

  Leaves conditional(const Instruction& it, const std::vector<Leaves>& made) {
    std::vector<Leaves> results;
    std::vector<int> branches;
    for (const Called& called : it.called)
      if (called.role != "to_apply") branches.push_back(called.computation);
    if (branches.empty() || it.operands.size() != branches.size() + 1)
      wrong_operands(it, static_cast<int>(branches.size()) + 1);
    ++branches_;
    for (std::size_t b = 0; b < branches.size(); ++b) {
      results.push_back(inline_computation(branches[b], {made[it.operands[b + 1]]}, it));
      check_leaves(it, it, results.back());
    }
    --branches_;
    Leaves joined;
    const auto leaves = leaves_of(it.shape);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      std::vector<int> operands;
      for (const Leaves& branch : results) operands.push_back(branch[i]);
      operands.push_back(made[it.operands.front()].front());
      const int node = new_node(NodeKind::join, it, std::move(operands));
      program_.nodes[node].argument = static_cast<int>(i);
      joined.push_back(add_output(node, *leaves[i]));
    }
    return joined;
  }

  int resolved(int value) {
    while (alias_[value] != value) value = alias_[value] = alias_[alias_[value]];
    return value;
  }

  void resolve_aliases() {
    // A value has a smaller number than what it is handed on as.
    std::vector<int> first(alias_.size(), -1);
    for (std::size_t v = 0; v < first.size(); ++v) {
      const auto [from, barrier] = handed_[v];
      first[v] = static_cast<std::size_t>(from) == v ? -1 : first[from];
      if (first[v] < 0 && barrier >= 0 && loop_of(static_cast<int>(v)) == loop_of(resolved(from)))
        first[v] = barrier;
    }
    for (Node& node : program_.nodes) {
      for (std::size_t i = 0; i < node.operands.size(); ++i) {
        int& operand = node.operands[i];
        if (first[operand] >= 0) {
          node.barriers.resize(node.operands.size(), -1);
          node.barriers[i] = first[operand];
        }
        operand = resolved(operand);
      }
    }
    for (int& result : program_.results) result = resolved(result);
  }

  int loop_of(int value) const { return program_.nodes[program_.values[value].node].loop; }

  void find_donated(const std::vector<Leaves>& arguments) {
    const Shape& root =
        module_.entry_computation().instructions[module_.entry_computation().root].shape;
    for (const Alias& alias : aliases(module_)) {
      const int result = leaf_at(root, alias.output);
      const auto parameter = static_cast<std::size_t>(alias.parameter);
      if (result < 0)
        throw InputError(module_.alias_place,
                         "input_output_alias names {" + path_in_words(alias.output) +
                             "}, which is not an array of the result " + text_of(root, false));
      const Computation& entry = module_.entry_computation();
      const int leaf = parameter >= arguments.size()
                           ? -1
                           : leaf_at(entry.instructions[entry.parameters[parameter]].shape,
                                     alias.parameter_path);
      if (leaf < 0)
        throw InputError(module_.alias_place, "input_output_alias names (" +
                                                  std::to_string(alias.parameter) + ", {" +
                                                  path_in_words(alias.parameter_path) +
                                                  "}), which is not an array of the parameters");
      const int node = program_.values[arguments[parameter][leaf]].node;
      program_.donated.emplace_back(program_.nodes[node].argument, result);
    }
  }

  static std::string path_in_words(const std::vector<std::int64_t>& path) {
    std::string out;
    for (const std::int64_t index : path) out += (out.empty() ? "" : ",") + std::to_string(index);
    return out;
  }

  // The position of the leaf that a path leads to; -1 where there is none.
  static int leaf_at(const Shape& shape, const std::vector<std::int64_t>& path) {
    const Shape* at = &shape;
    int leaf = 0;
    for (const std::int64_t index : path) {
      if (index < 0 || static_cast<std::size_t>(index) >= at->parts.size()) return -1;
      for (int i = 0; i < index; ++i) leaf += leaf_count(at->parts[i]);
      at = &at->parts[index];
    }
    return at->is_tuple() ? -1 : leaf;
  }

  const Module& module_;
  Program program_;
  std::vector<int> alias_;                   // of each value: what it is the same as
  std::vector<std::pair<int, int>> handed_;  // of each value: what was handed on, by which barrier
  std::map<int, std::vector<int>> barrier_given_;  // of each barrier's node
  std::vector<char> stays_;                        // nodes of branches of conditionals
  int barriers_ = 0;
  int branches_ = 0;        // of conditionals, being inlined
  std::vector<int> stack_;  // computations being inlined
  int computation_ = 0;
  int loop_ = -1;
};

}  // namespace

Program flatten(const Module& module) {
  LengthCheck(module).length(module.entry, 0);
  Program program = Flattener(module).run();
  drop_unused(program);
  return program;
}

}  // namespace plait::graph
