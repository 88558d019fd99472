#include "graph/hlo/read_text.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/error.h"
#include "graph/hlo/cursor.h"

namespace plait::graph {
namespace {

constexpr int kDeepestTuple = 64;
constexpr double kMostElements = 0x1p53;
// Ops that say where their operand is, which others are seen through.
constexpr std::array<std::string_view, 9> kOfOne{"bitcast", "broadcast", "convert",
                                                 "copy",    "reshape",   "reverse",
                                                 "slice",   "transpose", "reduce-precision"};

class Reader {
 public:
  Reader(std::string_view text, const std::string& where) : cursor_(text, where) {
    module_.where = where;
  }

  Module read() {
    header();
    tables();
    bool entry_found = false;
    for (cursor_.skip_space(); !cursor_.at_end(); cursor_.skip_space()) {
      const bool entry = cursor_.take("ENTRY");
      if (entry && entry_found) cursor_.fail("a second computation is marked ENTRY");
      computation();
      if (!entry) continue;
      entry_found = true;
      module_.entry = static_cast<int>(module_.computations.size()) - 1;
    }
    if (module_.computations.empty())
      cursor_.fail("the module has no computation: the text is cut off");
    if (!entry_found) cursor_.fail("no computation is marked ENTRY: the text is cut off");
    resolve_called();
    return std::move(module_);
  }

 private:
  void header() {
    cursor_.skip_space();
    if (!cursor_.take("HloModule")) not_hlo();
    cursor_.skip_space();
    module_.name = std::string(cursor_.name());
    if (module_.name.empty()) cursor_.fail("the module's name is missing after HloModule");
    attributes(module_.attributes);
  }

  [[noreturn]] void not_hlo() {
    const std::string_view rest = cursor_.between(cursor_.position(), cursor_.position() + 4000);
    const auto has = [&](std::string_view what) { return rest.find(what) != rest.npos; };
    if (rest.starts_with("ML\xEFR") || rest.find('\0') != rest.npos)
      cursor_.fail(
          "these are bytes, not HLO text: StableHLO as bytes, HLO as protobuf (.pb) and exported "
          "functions become text with plait.jax.to_hlo_text");
    if (has("stablehlo.") || has("mhlo.") || has("func.func") || has("module @"))
      cursor_.fail(
          "this is StableHLO, not HLO: write HLO with jax.jit(f).lower(...).as_text('hlo'), or "
          "convert it with plait.jax.to_hlo_text");
    if (has("import ") || has("def ") || has("#!/usr/bin/env python"))
      cursor_.fail(
          "this is Python, not HLO: trace the function with plait.jax.trace, or write "
          "jax.jit(f).lower(...).as_text('hlo') to a file");
    if (has("{ lambda")) cursor_.fail("this is a jaxpr, not HLO: lower it with jax.jit(f).lower()");
    cursor_.fail("this is not HLO text: it does not begin with HloModule");
  }

  // FileNames, FunctionNames, FileLocations, StackFrames, and what else XLA puts there: a word on a
  // line of its own, then numbered lines.
  void tables() {
    cursor_.skip_space();
    const std::size_t from = cursor_.position();
    std::size_t to = from;
    while (is_table_line()) {
      while (!cursor_.at_end() && cursor_.peek() != '\n') cursor_.step();
      to = cursor_.position();
      cursor_.skip_space();
    }
    module_.tables = std::string(cursor_.between(from, to));
  }

  bool is_table_line() const {
    constexpr std::array<std::string_view, 4> kTables{"FileNames", "FunctionNames", "FileLocations",
                                                      "StackFrames"};
    if (cursor_.peek() >= '0' && cursor_.peek() <= '9') return true;
    const std::string_view rest = cursor_.between(cursor_.position(), cursor_.position() + 14);
    return std::ranges::any_of(kTables, [&](std::string_view t) { return rest.starts_with(t); });
  }

  void computation() {
    cursor_.skip_space();
    cursor_.take('%');
    Computation made;
    made.name = std::string(cursor_.name());
    if (made.name.empty()) cursor_.fail("the name of a computation is expected here");
    if (!computation_by_name_.emplace(made.name, static_cast<int>(module_.computations.size()))
             .second)
      cursor_.fail("a second computation is named " + made.name);
    cursor_.skip_space();
    if (cursor_.peek() == '(') {
      cursor_.balanced();
      cursor_.skip_space();
      if (cursor_.take('-')) {
        cursor_.expect('>', "'-'");
        cursor_.skip_space();
        shape(0);
      }
    }
    attributes(made.attributes);
    cursor_.expect('{', "the head of computation " + made.name);
    by_name_.clear();
    made.root = -1;
    for (cursor_.skip_space(); cursor_.peek() != '}'; cursor_.skip_space()) {
      if (cursor_.at_end())
        cursor_.fail("the text ends inside computation " + made.name + ": it is cut off");
      instruction(made);
    }
    if (!made.instructions.empty() && made.root < 0)
      cursor_.fail("no instruction of computation " + made.name +
                   " is marked ROOT: the text is cut off");
    cursor_.take('}');
    finish(made);
    attributes(made.attributes);
    module_.computations.push_back(std::move(made));
  }

  void finish(Computation& made) {
    if (made.instructions.empty()) cursor_.fail("computation " + made.name + " is empty");
    for (std::size_t i = 0; i < made.instructions.size(); ++i) {
      const Instruction& it = made.instructions[i];
      if (it.parameter < 0) continue;
      const auto number = static_cast<std::size_t>(it.parameter);
      if (number >= made.instructions.size())
        throw InputError(module_.place(it), "parameter " + std::to_string(number) +
                                                " has a higher number than there are parameters");
      if (made.parameters.size() <= number) made.parameters.resize(number + 1, -1);
      if (made.parameters[number] >= 0)
        throw InputError(module_.place(it),
                         "parameter " + std::to_string(number) + " stands twice");
      made.parameters[number] = static_cast<int>(i);
    }
    const auto gap = std::ranges::find(made.parameters, -1);
    if (gap != made.parameters.end())
      cursor_.fail("computation " + made.name + " has no parameter " +
                   std::to_string(gap - made.parameters.begin()));
  }

  void instruction(Computation& made) {
    Instruction it;
    const bool root = cursor_.take("ROOT");
    cursor_.skip_space();
    it.line = cursor_.line();
    it.column = cursor_.column();
    cursor_.take('%');
    it.name = std::string(cursor_.name());
    if (it.name.empty()) cursor_.fail("the name of an instruction is expected here");
    cursor_.expect('=', "the name " + it.name);
    cursor_.skip_space();
    it.shape = shape(0);
    cursor_.skip_space();
    it.opcode = std::string(cursor_.word());
    if (it.opcode.empty()) cursor_.fail("the operation of " + it.name + " is expected here");
    cursor_.skip_space();
    if (cursor_.peek() != '(') cursor_.fail("'(' is missing after " + it.opcode);
    operands(it);
    attributes(it.attributes);
    const int position = static_cast<int>(made.instructions.size());
    if (!by_name_.emplace(it.name, position).second)
      throw InputError(
          module_.where + ":" + std::to_string(it.line) + ":" + std::to_string(it.column),
          "a second instruction of computation " + made.name + " is named " + it.name);
    if (root && made.root >= 0) cursor_.fail("computation " + made.name + " has two roots");
    if (root) made.root = position;
    made.instructions.push_back(std::move(it));
  }

  void operands(Instruction& it) {
    if (it.opcode == "constant") {
      const std::string_view all = cursor_.balanced();
      it.literal = std::string(all.substr(1, all.size() - 2));
      return;
    }
    cursor_.step();
    if (it.opcode == "parameter") {
      it.parameter = static_cast<int>(
          std::min<std::int64_t>(cursor_.integer("the parameter's number"), 1 << 30));
      cursor_.expect(')', "the parameter's number");
      return;
    }
    for (cursor_.skip_space(); !cursor_.take(')'); cursor_.skip_space()) {
      if (cursor_.at_end()) cursor_.fail("the text ends inside operands: it is cut off");
      it.operands.push_back(operand());
      cursor_.skip_space();
      if (!cursor_.take(',') && cursor_.peek() != ')')
        cursor_.expect(')', "the operands of " + it.name);
    }
    if (it.operands.empty() && std::ranges::find(kOfOne, it.opcode) != kOfOne.end())
      cursor_.fail(it.opcode + " must have an operand");
  }

  // "%x", "x", "f32[2]{0} %x" or "(f32[], s32[]) x".
  int operand() {
    bool typed = cursor_.peek() == '(';
    if (typed) {
      shape(0);
      cursor_.skip_space();
    }
    const bool percent = cursor_.take('%');
    std::string_view name = cursor_.name();
    if (!typed && !percent && cursor_.peek() == '[') {
      cursor_.balanced();
      if (cursor_.peek() == '{') cursor_.balanced();
      cursor_.skip_space();
      cursor_.take('%');
      name = cursor_.name();
    }
    if (name.empty()) cursor_.fail("the name of an operand is expected here");
    const auto found = by_name_.find(std::string(name));
    if (found == by_name_.end())
      cursor_.fail("operand " + std::string(name) + " is not defined before it is used",
                   name.size());
    return found->second;
  }

  Shape shape(int depth) {
    if (depth > kDeepestTuple) cursor_.fail("tuples are nested too deeply");
    Shape made;
    if (cursor_.take('(')) {
      for (cursor_.skip_space(); !cursor_.take(')'); cursor_.skip_space()) {
        if (cursor_.at_end()) cursor_.fail("the text ends inside a type: it is cut off");
        made.parts.push_back(shape(depth + 1));
        cursor_.skip_space();
        if (!cursor_.take(',') && cursor_.peek() != ')') cursor_.expect(')', "a type");
      }
      return made;
    }
    made.type = std::string(cursor_.word());
    if (made.type.empty()) cursor_.fail("a type is expected here");
    if (cursor_.peek() != '[') cursor_.fail("'[' is missing after the type " + made.type);
    cursor_.step();
    dims(made);
    if (cursor_.peek() == '{') made.layout = std::string(cursor_.balanced());
    return made;
  }

  void dims(Shape& made) {
    double elements = 1;
    for (cursor_.skip_space(); !cursor_.take(']'); cursor_.skip_space()) {
      // "<=8": a size that is only bounded; planned as its bound.
      if (cursor_.take('<')) cursor_.expect('=', "'<'");
      made.dims.push_back(cursor_.integer("a dimension"));
      elements *= static_cast<double>(std::max<std::int64_t>(made.dims.back(), 1));
      if (elements > kMostElements) cursor_.fail("the array has more than 2^53 elements");
      cursor_.skip_space();
      if (!cursor_.take(',') && cursor_.peek() != ']') cursor_.expect(']', "a dimension");
    }
  }

  void attributes(std::vector<Attribute>& into) {
    for (cursor_.skip_blanks(); cursor_.take(','); cursor_.skip_blanks()) {
      cursor_.skip_space();
      Attribute made;
      made.key = std::string(cursor_.word());
      if (made.key.empty()) cursor_.fail("the name of an attribute is expected after ','");
      cursor_.expect('=', "attribute " + made.key);
      if (made.key == "input_output_alias")
        module_.alias_place = module_.where + ":" + std::to_string(cursor_.line()) + ":" +
                              std::to_string(cursor_.column());
      made.value = std::string(cursor_.value());
      into.push_back(std::move(made));
    }
  }

  void resolve_called() {
    for (Computation& computation : module_.computations)
      for (Instruction& it : computation.instructions)
        for (const Attribute& attribute : it.attributes) resolve(it, attribute);
  }

  void resolve(Instruction& it, const Attribute& attribute) {
    constexpr std::array<std::string_view, 10> kRoles{"to_apply",
                                                      "body",
                                                      "condition",
                                                      "calls",
                                                      "called_computations",
                                                      "true_computation",
                                                      "false_computation",
                                                      "select",
                                                      "scatter",
                                                      "branch_computations"};
    if (std::ranges::find(kRoles, attribute.key) == kRoles.end()) return;
    Cursor names(attribute.value, module_.where);
    for (;;) {
      while (!names.at_end() && (names.peek() == '{' || names.peek() == '}' ||
                                 names.peek() == ',' || names.peek() == '%' || names.peek() == ' '))
        names.step();
      const std::string name(names.name());
      if (name.empty()) return;
      const auto found = computation_by_name_.find(name);
      if (found == computation_by_name_.end())
        throw InputError(module_.place(it), it.name + " names computation " + name +
                                                ", which the module does not have");
      it.called.push_back({attribute.key, found->second});
    }
  }

  Cursor cursor_;
  Module module_;
  std::unordered_map<std::string, int> by_name_;
  std::unordered_map<std::string, int> computation_by_name_;
};

}  // namespace

Module read_hlo(std::string_view text, const std::string& where) {
  return Reader(text, where).read();
}

}  // namespace plait::graph
