#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"

namespace plait::graph {

// A type of HLO: an array, or a tuple of types. The layout is the text between the braces after the
// dimensions ("{2,1,0:T(8,128)}"), kept for writing only: it is the order in memory, not the
// logical one.
struct Shape {
  std::string type;                // "bf16", "pred", "token"; "" = a tuple
  std::vector<std::int64_t> dims;  // of an array
  std::string layout;              // with its braces; "" = none was written
  std::vector<Shape> parts;        // of a tuple

  bool is_tuple() const { return type.empty(); }
  std::int64_t elements() const;  // of an array
  friend bool operator==(const Shape&, const Shape&) = default;
};

// Of one element: 2 for bf16, 0.5 for s4; 0 for types that hold nothing (token, opaque).
Bytes element_size(const std::string& type);
Bytes size_of(const Shape& shape);  // tuples: of all leaves
// Floating point or complex: what gradients are made of.
bool is_floating(const std::string& type);

// The arrays of a shape from left to right.
std::vector<const Shape*> leaves_of(const Shape& shape);
int leaf_count(const Shape& shape);

// Equal types and dimensions, whatever the layouts.
bool same_type(const Shape& a, const Shape& b);

// "bf16[16,2048]", with "{1,0}" behind it where layouts are asked for.
std::string text_of(const Shape& shape, bool layouts);

}  // namespace plait::graph
