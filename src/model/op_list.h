#pragma once

#include <string>
#include <utility>
#include <vector>

#include "model/model.h"

namespace plait {

// Writes the ops of one layer in execution order and fills every field of Op from the shapes, by
// the rules of Megatron-style tensor parallelism. `held` is what must travel past the op besides
// its output (the residual, an encoder's output): builders raise and lower it as tensors come and
// go.
class OpList {
 public:
  double held = 0;

  // [rows x inner] times [inner x columns] (+ bias). A row split reduces its output, which the
  // builder may set to nothing; the input is saved.
  Op& matmul(std::string name, Split split, double rows, double inner, double columns, bool bias);

  // A convolution without bias as the matrix product that it is: rows output positions, inner =
  // kernel area x input channels, columns output channels. `input` elements are read and saved.
  Op& convolution(std::string name, Split split, double input, double rows, double inner,
                  double columns);

  // Scores and weighted sum of `heads` heads; saves queries, keys and values. Head sizes of keys
  // and values may differ: Op::inner is their mean, which gives the same work.
  struct AttentionShape {
    double queries = 0;  // positions
    double keys = 0;
    double heads = 0;
    double kv_heads = 0;
    double key_dim = 0;
    double value_dim = 0;
  };
  Op& attention(std::string name, const AttentionShape& shape);

  // Layer norm of rows vectors of `width`; saves its input.
  Op& norm(std::string name, Split split, double rows, double width, double parameters);

  // Reads and writes this many elements and hands on the ones that it writes; saves nothing.
  Op& elementwise(std::string name, Split split, double read, double written);

  // Look-up of `rows` vectors of `width` in a table of `entries`.
  Op& embedding(std::string name, Split split, double rows, double width, double entries);

  // Softmax cross-entropy. Keeps the softmax in fp32 (4 bytes whatever the precision is).
  Op& loss(std::string name, Split split, double rows, double classes);

  Op& at(int position) { return ops_[position]; }
  Op& last() { return ops_.back(); }
  int size() const { return static_cast<int>(ops_.size()); }
  // The ops as a layer, which hands on what crosses a cut after its last op.
  LayerKind take(std::string name);

 private:
  Op& append(Op op, double output);
  std::vector<Op> ops_;
};

}  // namespace plait
