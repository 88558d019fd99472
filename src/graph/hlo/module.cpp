#include "graph/hlo/module.h"

#include <algorithm>

namespace plait::graph {
namespace {

const std::string* find(const std::vector<Attribute>& attributes, std::string_view key) {
  const auto it = std::ranges::find(attributes, key, &Attribute::key);
  return it == attributes.end() ? nullptr : &it->value;
}

}  // namespace

const std::string* Instruction::attribute(std::string_view key) const {
  return find(attributes, key);
}

const std::string* Module::attribute(std::string_view key) const { return find(attributes, key); }

std::string Module::place(const Instruction& instruction) const {
  return where + ":" + std::to_string(instruction.line) + ":" + std::to_string(instruction.column);
}

int instruction_count(const Module& module) {
  std::size_t count = 0;
  for (const Computation& computation : module.computations)
    count += computation.instructions.size();
  return static_cast<int>(count);
}

bool has_elided_constants(const Module& module) {
  return std::ranges::any_of(module.computations, [](const Computation& computation) {
    return std::ranges::any_of(computation.instructions, [](const Instruction& instruction) {
      return instruction.opcode == "constant" &&
             instruction.literal.find("...") != std::string::npos;
    });
  });
}

}  // namespace plait::graph
