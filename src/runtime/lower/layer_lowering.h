#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/model.h"
#include "runtime/lower/steps.h"

namespace plait::runtime {

// Lowers the layers of a model one after the other, following by name which tensors are alive
// between them. The names of ops are those of the builders in model/.
class LayerLowering {
 public:
  explicit LayerLowering(Steps& steps) : steps_(steps) {}

  // "" or what cannot be run. `number` counts layers from 0 and names the parameters.
  std::string layer(int number, const std::string& name, const std::vector<const Op*>& ops);

  bool has_loss() const { return has_loss_; }

 private:
  using Lower = std::string (LayerLowering::*)(const Op& op, Step& step);
  static const std::map<std::string, Lower>& by_name();

  std::string one(const Op& op, Step& step);
  const Op* find(const std::string& name) const;
  void begin_branch(const Op& op, Step& step);

  Parameter& add(Step& step, const std::string& what, std::vector<std::int64_t> shape);
  void add_bias(const Op& op, Step& step, double weights, std::vector<std::int64_t> shape);
  void alive(const std::string& name, Alive::Cut cut, std::vector<std::int64_t> shape);
  void alive(const std::string& name, int dim, std::vector<Part> parts,
             std::vector<std::int64_t> shape);
  void dead(const std::string& name) { alive_.erase(name); }
  const std::vector<std::int64_t>& shape_of(const std::string& name) const;

  std::string tokens(const Op& op, Step& step);
  std::string positions(const Op& op, Step& step);
  std::string types(const Op& op, Step& step);
  std::string patches(const Op& op, Step& step);
  std::string class_token(const Op& op, Step& step);
  std::string relative_bias(const Op& op, Step& step);
  std::string nothing(const Op& op, Step& step);
  std::string norm(const Op& op, Step& step);
  std::string qk_norm(const Op& op, Step& step);
  std::string dense(const Op& op, Step& step);
  std::string column(const Op& op, Step& step);
  std::string row(const Op& op, Step& step);
  std::string queries_keys_values(const Op& op, Step& step);
  std::string cross_queries(const Op& op, Step& step);
  std::string cross_keys_values(const Op& op, Step& step);
  std::string rotary(const Op& op, Step& step);
  std::string attention(const Op& op, Step& step);
  std::string activation(const Op& op, Step& step);
  std::string residual(const Op& op, Step& step);
  std::string router(const Op& op, Step& step);
  std::string top_k(const Op& op, Step& step);
  std::string experts_up(const Op& op, Step& step);
  std::string experts_activation(const Op& op, Step& step);
  std::string experts_down(const Op& op, Step& step);
  std::string combine(const Op& op, Step& step);
  std::string shared_gate(const Op& op, Step& step);
  std::string shared_add(const Op& op, Step& step);
  std::string pooler(const Op& op, Step& step);
  std::string next_sentence(const Op& op, Step& step);
  std::string classifier(const Op& op, Step& step);
  std::string logits(const Op& op, Step& step);
  std::string loss(const Op& op, Step& step);

  std::string convolution(const Op& op, Step& step);
  std::string batch_norm(const Op& op, Step& step);
  std::string relu(const Op& op, Step& step);
  std::string max_pool(const Op& op, Step& step);
  std::string skip(const Op& op, Step& step);
  std::string skip_norm(const Op& op, Step& step);
  std::string add_relu(const Op& op, Step& step);
  std::string average_pool(const Op& op, Step& step);
  std::string fully_connected(const Op& op, Step& step);
  void convolution_shape(const Op& op, std::int64_t channels, Step& step);

  Steps& steps_;
  std::map<std::string, Alive> alive_;
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
