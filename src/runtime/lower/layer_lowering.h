#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/model.h"
#include "runtime/lower/exec_op.h"

namespace plait::runtime {

// Lowers the layers of a model one after the other, following by name which tensors are alive
// between them. The names of ops are those of the builders in model/.
class LayerLowering {
 public:
  explicit LayerLowering(ExecProgram& program) : program_(program) {}

  // "" or what cannot be run. `number` counts layers from 0 and names the parameters.
  std::string layer(int number, const std::string& name, const std::vector<const Op*>& ops);

  bool has_loss() const { return has_loss_; }

 private:
  using Lower = std::string (LayerLowering::*)(const Op& op, ExecOp& exec);
  static const std::map<std::string, Lower>& by_name();

  std::string one(const Op& op, ExecOp& exec);
  const Op* find(const std::string& name) const;
  void begin_branch(const Op& op, ExecOp& exec);

  Parameter& add(ExecOp& exec, const std::string& what, std::vector<std::int64_t> shape);
  void add_bias(const Op& op, ExecOp& exec, double weights, std::vector<std::int64_t> shape);
  void alive(const std::string& name, LiveTensor::Cut cut, std::vector<std::int64_t> shape);
  void alive(const std::string& name, int dim, std::vector<Part> parts,
             std::vector<std::int64_t> shape);
  void dead(const std::string& name) { alive_.erase(name); }
  const std::vector<std::int64_t>& shape_of(const std::string& name) const;

  std::string tokens(const Op& op, ExecOp& exec);
  std::string positions(const Op& op, ExecOp& exec);
  std::string types(const Op& op, ExecOp& exec);
  std::string patches(const Op& op, ExecOp& exec);
  std::string class_token(const Op& op, ExecOp& exec);
  std::string relative_bias(const Op& op, ExecOp& exec);
  std::string nothing(const Op& op, ExecOp& exec);
  std::string norm(const Op& op, ExecOp& exec);
  std::string qk_norm(const Op& op, ExecOp& exec);
  std::string dense(const Op& op, ExecOp& exec);
  std::string column(const Op& op, ExecOp& exec);
  std::string row(const Op& op, ExecOp& exec);
  std::string queries_keys_values(const Op& op, ExecOp& exec);
  std::string cross_queries(const Op& op, ExecOp& exec);
  std::string cross_keys_values(const Op& op, ExecOp& exec);
  std::string rotary(const Op& op, ExecOp& exec);
  std::string attention(const Op& op, ExecOp& exec);
  std::string activation(const Op& op, ExecOp& exec);
  std::string residual(const Op& op, ExecOp& exec);
  std::string router(const Op& op, ExecOp& exec);
  std::string top_k(const Op& op, ExecOp& exec);
  std::string experts_up(const Op& op, ExecOp& exec);
  std::string experts_activation(const Op& op, ExecOp& exec);
  std::string experts_down(const Op& op, ExecOp& exec);
  std::string combine(const Op& op, ExecOp& exec);
  std::string shared_gate(const Op& op, ExecOp& exec);
  std::string shared_add(const Op& op, ExecOp& exec);
  std::string pooler(const Op& op, ExecOp& exec);
  std::string next_sentence(const Op& op, ExecOp& exec);
  std::string classifier(const Op& op, ExecOp& exec);
  std::string logits(const Op& op, ExecOp& exec);
  std::string loss(const Op& op, ExecOp& exec);

  std::string convolution(const Op& op, ExecOp& exec);
  std::string batch_norm(const Op& op, ExecOp& exec);
  std::string relu(const Op& op, ExecOp& exec);
  std::string max_pool(const Op& op, ExecOp& exec);
  std::string skip(const Op& op, ExecOp& exec);
  std::string skip_norm(const Op& op, ExecOp& exec);
  std::string add_relu(const Op& op, ExecOp& exec);
  std::string average_pool(const Op& op, ExecOp& exec);
  std::string fully_connected(const Op& op, ExecOp& exec);
  void convolution_shape(const Op& op, std::int64_t channels, ExecOp& exec);

  ExecProgram& program_;
  std::map<std::string, LiveTensor> alive_;
  int number_ = 0;
  std::string layer_;                // name of its kind
  std::vector<const Op*> ops_;       // of the layer
  const Op* previous_ = nullptr;     // in the layer
  bool in_branch_ = false;           // "residual" is alive
  std::int64_t hidden_ = 0;          // width of the stream
  std::vector<Parameter> relative_;  // the stack's table, if it has one
  bool has_loss_ = false;
};

}  // namespace plait::runtime
