#include "graph/hlo/shape.h"

#include <cctype>
#include <cstddef>

namespace plait::graph {
namespace {

void collect_leaves(const Shape& shape, std::vector<const Shape*>& into) {
  if (!shape.is_tuple()) {
    into.push_back(&shape);
    return;
  }
  for (const Shape& part : shape.parts) collect_leaves(part, into);
}

void append_text(const Shape& shape, bool layouts, std::string& out) {
  if (!shape.is_tuple()) {
    out += shape.type;
    out += '[';
    for (std::size_t i = 0; i < shape.dims.size(); ++i) {
      if (i > 0) out += ',';
      out += std::to_string(shape.dims[i]);
    }
    out += ']';
    if (layouts) out += shape.layout;
    return;
  }
  out += '(';
  for (std::size_t i = 0; i < shape.parts.size(); ++i) {
    if (i > 0) out += ", ";
    append_text(shape.parts[i], layouts, out);
  }
  out += ')';
}

}  // namespace

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t dim : dims) product *= dim;
  return product;
}

Bytes element_size(const std::string& type) {
  if (type == "pred") return Bytes(1);
  std::size_t at = 0;
  while (at < type.size() && std::isdigit(static_cast<unsigned char>(type[at])) == 0) ++at;
  double bits = 0;
  for (; at < type.size() && std::isdigit(static_cast<unsigned char>(type[at])) != 0; ++at)
    bits = bits * 10 + (type[at] - '0');
  return Bytes(bits / 8);
}

Bytes size_of(const Shape& shape) {
  if (!shape.is_tuple()) return element_size(shape.type) * static_cast<double>(shape.elements());
  Bytes sum;
  for (const Shape* leaf : leaves_of(shape)) sum += size_of(*leaf);
  return sum;
}

bool is_floating(const std::string& type) {
  return type.starts_with('f') || type.starts_with("bf") || type.starts_with('c');
}

std::vector<const Shape*> leaves_of(const Shape& shape) {
  std::vector<const Shape*> leaves;
  collect_leaves(shape, leaves);
  return leaves;
}

int leaf_count(const Shape& shape) {
  if (!shape.is_tuple()) return 1;
  int sum = 0;
  for (const Shape& part : shape.parts) sum += leaf_count(part);
  return sum;
}

bool same_type(const Shape& a, const Shape& b) {
  if (a.type != b.type || a.dims != b.dims || a.parts.size() != b.parts.size()) return false;
  for (std::size_t i = 0; i < a.parts.size(); ++i)
    if (!same_type(a.parts[i], b.parts[i])) return false;
  return true;
}

std::string text_of(const Shape& shape, bool layouts) {
  std::string out;
  append_text(shape, layouts, out);
  return out;
}

}  // namespace plait::graph
