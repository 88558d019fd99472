#include "graph/hlo/write_text.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace plait::graph {
namespace {

void write_attributes(const std::vector<Attribute>& attributes, bool without_sharding,
                      std::string& out) {
  for (const Attribute& attribute : attributes) {
    if (without_sharding && attribute.key == "sharding") continue;
    out += ", ";
    out += attribute.key;
    out += '=';
    out += attribute.value;
  }
}

void write_instruction(const Computation& computation, int position, std::string& out) {
  const Instruction& it = computation.instructions[position];
  out += position == computation.root ? "  ROOT " : "  ";
  out += it.name;
  out += " = ";
  out += text_of(it.shape, true);
  out += ' ';
  out += it.opcode;
  out += '(';
  if (it.opcode == "constant") {
    out += it.literal;
  } else if (it.parameter >= 0) {
    out += std::to_string(it.parameter);
  } else {
    for (std::size_t i = 0; i < it.operands.size(); ++i) {
      if (i > 0) out += ", ";
      out += computation.instructions[it.operands[i]].name;
    }
  }
  out += ')';
}

// Computations that instructions need, callees first, each once.
void collect(const Module& module, int computation, std::vector<char>& seen,
             std::vector<int>& order) {
  if (seen[computation] != 0) return;
  seen[computation] = 1;
  for (const Instruction& it : module.computations[computation].instructions)
    for (const Called& called : it.called) collect(module, called.computation, seen, order);
  order.push_back(computation);
}

// The part's own computation, with parameters for what comes from outside.
class PartBuilder {
 public:
  PartBuilder(const Computation& whole, std::span<const int> chosen)
      : whole_(whole), chosen_(chosen.begin(), chosen.end()) {}

  Computation build(const std::string& name) {
    part_.name = name;
    for (const int position : chosen_) add(position);
    add_results();
    return std::move(part_);
  }

 private:
  void add(int position) {
    const Instruction& it = whole_.instructions[position];
    Instruction copy = it;
    for (int& operand : copy.operands) operand = place_of(operand);
    if (copy.parameter >= 0) {
      copy.parameter = static_cast<int>(part_.parameters.size());
      part_.parameters.push_back(static_cast<int>(part_.instructions.size()));
    }
    placed_[position] = static_cast<int>(part_.instructions.size());
    part_.instructions.push_back(std::move(copy));
  }

  int place_of(int operand) {
    if (const auto found = placed_.find(operand); found != placed_.end()) return found->second;
    const Instruction& source = whole_.instructions[operand];
    Instruction parameter;
    parameter.name = source.name;
    parameter.opcode = "parameter";
    parameter.shape = source.shape;
    parameter.parameter = static_cast<int>(part_.parameters.size());
    const int at = static_cast<int>(part_.instructions.size());
    part_.parameters.push_back(at);
    part_.instructions.push_back(std::move(parameter));
    placed_[operand] = at;
    return at;
  }

  void add_results() {
    std::set<int> used_inside;
    std::set<int> used_outside;
    for (int i = 0; i < static_cast<int>(whole_.instructions.size()); ++i)
      for (const int operand : whole_.instructions[i].operands)
        (chosen_.contains(i) ? used_inside : used_outside).insert(operand);
    std::vector<int> results;
    for (const int i : chosen_)
      if (used_outside.contains(i) || i == whole_.root || !used_inside.contains(i))
        results.push_back(placed_[i]);
    if (results.size() == 1) {
      part_.root = results.front();
      return;
    }
    Instruction tuple;
    tuple.name = "part_results";
    tuple.opcode = "tuple";
    for (const int result : results) tuple.shape.parts.push_back(part_.instructions[result].shape);
    tuple.operands = results;
    part_.root = static_cast<int>(part_.instructions.size());
    part_.instructions.push_back(std::move(tuple));
  }

  const Computation& whole_;
  std::set<int> chosen_;
  std::unordered_map<int, int> placed_;
  Computation part_;
};

}  // namespace

std::string write_hlo(const Module& module) {
  return write_hlo(
      module, [](int, int) { return std::string(); }, false);
}

std::string write_hlo(const Module& module, const ExtraAttributes& extra, bool replace_shardings) {
  std::string out = "HloModule " + module.name;
  write_attributes(module.attributes, false, out);
  out += "\n\n";
  if (!module.tables.empty()) out += module.tables + "\n\n";
  for (int c = 0; c < static_cast<int>(module.computations.size()); ++c) {
    const Computation& computation = module.computations[c];
    if (c == module.entry) out += "ENTRY ";
    out += computation.name + " {\n";
    for (int i = 0; i < static_cast<int>(computation.instructions.size()); ++i) {
      write_instruction(computation, i, out);
      const std::string more = extra(c, i);
      write_attributes(computation.instructions[i].attributes, replace_shardings && !more.empty(),
                       out);
      out += more;
      out += '\n';
    }
    out += '}';
    write_attributes(computation.attributes, false, out);
    out += "\n\n";
  }
  return out;
}

Module part_of(const Module& module, int computation, std::span<const int> instructions) {
  Module part;
  part.name = module.name + "_part";
  part.where = module.where;
  part.tables = module.tables;
  Computation entry =
      PartBuilder(module.computations[computation], instructions).build("part_entry");
  std::vector<char> seen(module.computations.size(), 0);
  std::vector<int> order;
  for (const Instruction& it : entry.instructions)
    for (const Called& called : it.called) collect(module, called.computation, seen, order);
  std::vector<int> place(module.computations.size(), -1);
  for (const int c : order) {
    place[c] = static_cast<int>(part.computations.size());
    part.computations.push_back(module.computations[c]);
  }
  part.computations.push_back(std::move(entry));
  part.entry = static_cast<int>(part.computations.size()) - 1;
  for (Computation& c : part.computations)
    for (Instruction& it : c.instructions)
      for (Called& called : it.called) called.computation = place[called.computation];
  return part;
}

}  // namespace plait::graph
