#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/lower/exec_op.h"

namespace plait::runtime {

// The ops of a layer by name, in execution order.
struct LayerNames {
  std::string name;  // of its kind: "decoder"
  std::vector<std::string> ops;
};

// Writes a program layer by layer and follows by name which tensors are alive between its ops. What
// the ops are comes from the configuration of the network alone; a family of networks derives from
// this and lowers each op by its name.
class ProgramWriter {
 public:
  explicit ProgramWriter(ExecProgram& program) : program_(program) {}
  virtual ~ProgramWriter() = default;
  ProgramWriter(const ProgramWriter&) = delete;
  ProgramWriter& operator=(const ProgramWriter&) = delete;

  // "" or what cannot be run: "op 'attention.q_down' is not one that can be run".
  std::string write_layer(const LayerNames& layer);

  bool has_loss() const { return has_loss_; }

 protected:
  virtual void begin_layer(const LayerNames& layer) = 0;
  // Fills an op of which the name is set; "" or why it cannot be run.
  virtual std::string write_op(ExecOp& exec) = 0;

  // A parameter "3.attention.qkv.weight", 3 being the number of the layer.
  Parameter& add(ExecOp& exec, const std::string& what, std::vector<std::int64_t> shape);
  // A bias that is cut as the weight is when that is cut by output.
  void add_bias(ExecOp& exec, std::vector<std::int64_t> shape);

  void alive(const std::string& name, LiveTensor::Cut cut, std::vector<std::int64_t> shape);
  void alive(const std::string& name, int dim, std::vector<Part> parts,
             std::vector<std::int64_t> shape);
  void copy(const std::string& from, const std::string& to);
  void dead(const std::string& name) { alive_.erase(name); }
  bool is_alive(const std::string& name) const { return alive_.contains(name); }
  const std::vector<std::int64_t>& shape_of(const std::string& name) const;

  bool layer_has(const std::string& op) const;
  const LayerNames& layer() const { return *layer_; }
  int layer_number() const { return number_; }

  // The loss of `labels` positions over `classes`; nothing else stays alive.
  void end_in_loss(ExecOp& exec, std::int64_t classes);

  ExecProgram& program_;
  std::map<std::string, LiveTensor> alive_;

 private:
  int number_ = -1;
  const LayerNames* layer_ = nullptr;
  bool has_loss_ = false;
};

}  // namespace plait::runtime
