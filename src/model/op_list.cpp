#include "model/op_list.h"

#include <utility>

namespace plait {

Op& OpList::append(Op op, double output) {
  op.boundary = output + held;
  ops_.push_back(std::move(op));
  return ops_.back();
}

LayerKind OpList::take(std::string name) {
  LayerKind kind;
  kind.name = std::move(name);
  kind.ops = std::move(ops_);
  kind.output = kind.ops.back().boundary;
  return kind;
}

Op& OpList::matmul(std::string name, Split split, double rows, double inner, double columns,
                   bool bias) {
  Op op;
  op.name = std::move(name);
  op.kind = OpKind::matmul;
  op.split = split;
  op.rows = rows;
  op.inner = inner;
  op.columns = columns;
  op.forward = Flops(2 * rows * inner * columns);
  op.parameters = inner * columns + (bias ? columns : 0);
  op.moved = rows * (inner + columns);
  op.saved = rows * inner;
  op.saved_is_sharded = split == Split::row;
  if (split == Split::row) op.forward_reduce = rows * columns;
  return append(std::move(op), rows * columns);
}

Op& OpList::convolution(std::string name, Split split, double input, double rows, double inner,
                        double columns) {
  Op& op = matmul(std::move(name), split, rows, inner, columns, false);
  op.kind = OpKind::convolution;
  op.moved = input + rows * columns;
  op.saved = input;
  return op;
}

Op& OpList::attention(std::string name, const AttentionShape& shape) {
  const double query = shape.queries * shape.heads * shape.key_dim;
  const double key_value = shape.keys * shape.kv_heads * (shape.key_dim + shape.value_dim);
  const double output = shape.queries * shape.heads * shape.value_dim;
  Op op;
  op.name = std::move(name);
  op.kind = OpKind::attention;
  op.split = Split::heads;
  op.rows = shape.queries;
  op.columns = shape.keys;
  op.inner = (shape.key_dim + shape.value_dim) / 2;
  op.count = shape.heads;
  op.kv_count = shape.kv_heads;
  op.forward =
      Flops(2 * shape.queries * shape.keys * shape.heads * (shape.key_dim + shape.value_dim));
  op.moved = 2 * (query + key_value);
  op.saved = query + key_value;
  op.saved_is_sharded = true;
  return append(std::move(op), output);
}

Op& OpList::norm(std::string name, Split split, double rows, double width, double parameters) {
  Op op;
  op.name = std::move(name);
  op.kind = OpKind::norm;
  op.function = Function::layer_norm;
  op.split = split;
  op.rows = rows;
  op.columns = width;
  op.parameters = parameters;
  op.moved = 2 * rows * width;
  op.saved = rows * width;
  op.saved_is_sharded = split == Split::shard;
  return append(std::move(op), rows * width);
}

Op& OpList::elementwise(std::string name, Split split, double read, double written) {
  Op op;
  op.name = std::move(name);
  op.split = split;
  op.moved = read + written;
  op.saved_is_sharded = split == Split::shard;
  return append(std::move(op), written);
}

Op& OpList::embedding(std::string name, Split split, double rows, double width, double entries) {
  Op op;
  op.name = std::move(name);
  op.kind = OpKind::embedding;
  op.split = split;
  op.rows = rows;
  op.columns = width;
  op.parameters = entries * width;
  op.moved = 2 * rows * width;
  if (split == Split::vocabulary) op.forward_reduce = rows * width;
  return append(std::move(op), rows * width);
}

Op& OpList::loss(std::string name, Split split, double rows, double classes) {
  constexpr double kSoftmaxBytes = 4;
  Op op;
  op.name = std::move(name);
  op.kind = OpKind::loss;
  op.split = split;
  op.rows = rows;
  op.columns = classes;
  // Logits are read for their maximum, read again and written as exponentials.
  op.moved = 3 * rows * classes;
  op.saved_mask = Bytes(kSoftmaxBytes * rows * classes);
  op.saved_is_sharded = split == Split::vocabulary;
  // Maximum, sum of exponentials and the target's logit of every position.
  if (split == Split::vocabulary) op.forward_reduce = 3 * rows;
  return append(std::move(op), 0);
}

}  // namespace plait
