#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/transformer_config.h"
#include "runtime/lower/program_writer.h"

namespace plait::runtime {

// The sizes of one stack of blocks, with every "0 = ..." of the configuration resolved.
struct StackShape {
  explicit StackShape(const TransformerConfig& config, std::int64_t positions, bool causal);

  std::int64_t positions = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t ffn = 0;
  bool causal = false;
  std::int64_t queries() const { return heads * head_dim; }
  std::int64_t keys() const { return kv_heads * head_dim; }
};

// Lowers the layers of a transformer. The names of ops are those of model/transformer.cpp and
// model/transformer_blocks.cpp; everything else is read from the configuration.
class TransformerLowering : public ProgramWriter {
 public:
  // `config` must outlive it.
  TransformerLowering(const TransformerConfig& config, ExecProgram& program);

 private:
  void begin_layer(const LayerNames& layer) override;
  std::string write_op(ExecOp& exec) override;

  using Lower = std::string (TransformerLowering::*)(ExecOp& exec);
  static const std::map<std::string, Lower>& by_name();

  void begin_branch(ExecOp& exec);
  const StackShape& stack() const { return in_decoder_ ? decoder_ : encoder_; }
  std::int64_t table_width() const;     // of a row of the token table
  std::int64_t embedded_width() const;  // of a token before the first block's width is reached
  void set_weight(ExecOp& exec, std::int64_t out, std::int64_t in, bool bias);
  void set_norm(ExecOp& exec, std::int64_t width);
  void set_heads(ExecOp& exec) const;

  std::string tokens(ExecOp& exec);
  std::string positions(ExecOp& exec);
  std::string types(ExecOp& exec);
  std::string patches(ExecOp& exec);
  std::string class_token(ExecOp& exec);
  std::string relative_bias(ExecOp& exec);
  std::string embedding_projection(ExecOp& exec);
  std::string embedding_norm(ExecOp& exec);
  std::string nothing(ExecOp& exec);

  std::string norm(ExecOp& exec);
  std::string qk_norm(ExecOp& exec);
  std::string queries_keys_values(ExecOp& exec);
  std::string cross_queries(ExecOp& exec);
  std::string cross_keys_values(ExecOp& exec);
  std::string rotary(ExecOp& exec);
  std::string attention(ExecOp& exec);
  std::string attention_projection(ExecOp& exec);
  std::string mlp_up(ExecOp& exec);
  std::string mlp_activation(ExecOp& exec);
  std::string mlp_down(ExecOp& exec);
  std::string residual(ExecOp& exec);

  std::string router(ExecOp& exec);
  std::string top_k(ExecOp& exec);
  std::string experts_up(ExecOp& exec);
  std::string experts_activation(ExecOp& exec);
  std::string experts_down(ExecOp& exec);
  std::string combine(ExecOp& exec);
  std::string shared_gate(ExecOp& exec);
  std::string shared_add(ExecOp& exec);

  std::string pooler(ExecOp& exec);
  std::string head_dense(ExecOp& exec);
  std::string head_activation(ExecOp& exec);
  std::string head_norm(ExecOp& exec);
  std::string head_projection(ExecOp& exec);
  std::string next_sentence(ExecOp& exec);
  std::string classifier(ExecOp& exec);
  std::string logits(ExecOp& exec);
  std::string loss(ExecOp& exec);

  const TransformerConfig& config_;
  const TransformerConfig decoder_config_;
  const StackShape encoder_;  // the only stack, or the encoder of two
  const StackShape decoder_;
  std::vector<bool> windowed_;       // by layer of a stack: attends within the window
  std::vector<bool> turned_;         // has rotary positions
  bool in_decoder_ = false;          // of an encoder-decoder
  int block_ = -1;                   // of the stack, from 0
  bool in_branch_ = false;           // "residual" is alive
  std::vector<Parameter> relative_;  // the stack's table, if it has one
};

}  // namespace plait::runtime
