#include "model/transformer.h"

#include <algorithm>
#include <utility>

#include "model/transformer_blocks.h"

namespace plait {
namespace {

// Emits the units around the blocks and strings them together.
class ModelWriter {
 public:
  explicit ModelWriter(const TransformerConfig& config)
      : c_(config),
        decoder_config_(of_decoder(config)),
        shape_(config),
        decoder_shape_(decoder_config_),
        width_(config.embedding_width > 0 ? config.embedding_width : config.hidden) {
    dense_.resize(std::max(c_.layers, c_.decoder_layers));
    for (const int layer : c_.moe.dense)
      if (layer < static_cast<int>(dense_.size())) dense_[layer] = true;
    model_.name = c_.name;
    model_.sequence_length = c_.patches.patch > 0 ? 1 : c_.sequence;
    model_.vocabulary = c_.patches.patch > 0 ? 0 : c_.vocabulary;
    model_.causal = c_.causal;
    model_.dropout = c_.dropout;
    TransformerConfig architecture = c_;
    architecture.name.clear();
    model_.architecture = std::move(architecture);
  }

  Model write() {
    const bool two_stacks = c_.decoder_layers > 0;
    const double source = source_positions(c_);
    const double target = target_positions(c_);
    add_unit(embedding(source));
    const bool first_is_encoder = two_stacks || !c_.causal;
    add_blocks(first_is_encoder ? "encoder" : "decoder", {.positions = source}, shape_, c_.layers);
    if (two_stacks) {
      const int embedding_unit = add_unit(decoder_embedding(source, target));
      model_.ties.push_back({.first = 0,
                             .second = embedding_unit,
                             .parameters = table(),
                             .first_op = 0,
                             .second_op = c_.final_norm ? 1 : 0});
      add_blocks("decoder", {.positions = target, .encoder_positions = source}, decoder_shape_,
                 c_.decoder_layers);
    }
    const int last = add_unit(head(target));
    if (c_.tied && has_logits()) {
      model_.ties.push_back({.first = 0,
                             .second = last,
                             .parameters = table(),
                             .first_op = 0,
                             .second_op = logits_op_});
    }
    set_norms();
    return std::move(model_);
  }

 private:
  void set_norms() {
    const auto function = [](NormKind kind) {
      return kind == NormKind::layer ? Function::layer_norm : Function::rms_norm;
    };
    for (LayerKind& kind : model_.kinds)
      for (Op& op : kind.ops)
        if (op.kind == OpKind::norm)
          op.function = function(op.name == "attention.qk_norm" ? c_.qk_norm_kind : c_.norm);
  }

  double table() const { return static_cast<double>(c_.vocabulary) * width_; }
  bool has_logits() const {
    return c_.head == Head::language_model || c_.head == Head::masked ||
           c_.head == Head::pretraining;
  }

  int add_unit(LayerKind kind) {
    model_.kinds.push_back(std::move(kind));
    model_.units.push_back(static_cast<int>(model_.kinds.size()) - 1);
    return model_.unit_count() - 1;
  }

  bool is_mixture(int layer) const {
    const Moe& moe = c_.moe;
    return moe.experts > 0 && layer >= moe.first_dense && (layer + 1) % moe.every == 0 &&
           !dense_[layer];
  }

  void add_blocks(const std::string& name, const Stack& stack, const BlockShape& shape,
                  int layers) {
    if (c_.shared_layers) return add_shared_blocks(name, stack, shape, layers);
    int kind_of[2] = {-1, -1};  // plain, mixture: made when first met
    for (int layer = 0; layer < layers; ++layer) {
      const bool mixture = is_mixture(layer);
      int& kind = kind_of[mixture ? 1 : 0];
      if (kind < 0) {
        kind = static_cast<int>(model_.kinds.size());
        model_.kinds.push_back(
            transformer_block(shape, stack, mixture ? "moe_" + name : name, mixture));
      }
      model_.units.push_back(kind);
    }
  }

  // The first block owns the weights. Each of the others is tied to the one before it, so that a
  // stage of consecutive blocks has one copy, whose gradients it sums with its neighbour's.
  void add_shared_blocks(const std::string& name, const Stack& stack, const BlockShape& shape,
                         int layers) {
    const int first = add_unit(transformer_block(shape, stack, name, false));
    LayerKind again = model_.unit(first);
    again.name += "_again";
    for (Op& op : again.ops) op.parameters = 0;
    const int kind = static_cast<int>(model_.kinds.size());
    if (layers > 1) model_.kinds.push_back(std::move(again));
    for (int unit = first + 1; unit < first + layers; ++unit) {
      model_.units.push_back(kind);
      const std::vector<Op>& ops = model_.unit(first).ops;
      for (int op = 0; op < static_cast<int>(ops.size()); ++op)
        if (ops[op].parameters > 0)
          model_.ties.push_back({.first = unit - 1,
                                 .second = unit,
                                 .parameters = ops[op].parameters,
                                 .first_op = op,
                                 .second_op = op});
    }
  }

  // Features of a token before the first block's width is reached.
  double embedded_width() const { return c_.narrow_embedding ? width_ : shape_.hidden; }

  LayerKind embedding(double positions) const {
    OpList ops;
    if (c_.patches.patch > 0) {
      const double patch_values =
          static_cast<double>(c_.patches.patch) * c_.patches.patch * c_.patches.channels;
      ops.matmul("embedding.patches", Split::replicated, positions - c_.patches.tokens,
                 patch_values, shape_.hidden, true)
          .kind = OpKind::convolution;
      ops.elementwise("embedding.class_token", Split::replicated, positions * shape_.hidden,
                      positions * shape_.hidden)
          .parameters = static_cast<double>(c_.patches.tokens) * shape_.hidden;
    } else {
      ops.embedding("embedding.tokens", Split::vocabulary, positions, width_, c_.vocabulary);
    }
    add_positions(ops, positions);
    const double width = embedded_width();
    const double stream = positions * width;
    if (c_.embedding_norm)
      ops.norm("embedding.norm", Split::replicated, positions, width,
               shape_.norm_parameters(width));
    if (c_.dropout)
      ops.elementwise("embedding.dropout", Split::replicated, stream, stream).saved_mask =
          Bytes(stream);
    if (width != shape_.hidden)
      ops.matmul("embedding.projection", Split::replicated, positions, width, shape_.hidden, true);
    return ops.take("embedding");
  }

  void add_positions(OpList& ops, double positions) const {
    if (width_ != embedded_width())
      ops.matmul("embedding.projection", Split::replicated, positions, width_, shape_.hidden,
                 false);
    add_learned_positions(ops, positions);
    if (c_.type_vocabulary > 0)
      ops.embedding("embedding.types", Split::replicated, positions, embedded_width(),
                    c_.type_vocabulary);
    if (has_bias_of_stack()) add_relative_bias(ops, positions * shape_.hidden);
  }

  void add_learned_positions(OpList& ops, double positions) const {
    const bool kept = c_.positions == Positions::sinusoidal && c_.position_rows > 0;
    if (c_.positions != Positions::learned && !kept) return;
    const double rows = c_.position_rows > 0 ? c_.position_rows : positions;
    ops.embedding("embedding.positions", Split::replicated, positions, embedded_width(), rows);
  }

  bool has_bias_of_stack() const {
    return c_.positions == Positions::relative && !c_.relative_everywhere;
  }

  // One table for the whole stack, which its first block owns and every block reads.
  void add_relative_bias(OpList& ops, double stream) const {
    ops.held += stream;
    Op& op = ops.elementwise("embedding.relative_bias", Split::shard, 0, 0);
    op.parameters = static_cast<double>(c_.relative_buckets) * shape_.heads;
    ops.held -= stream;
  }

  LayerKind decoder_embedding(double source, double target) const {
    OpList ops;
    if (c_.final_norm)
      ops.norm("encoder.norm", Split::replicated, source, shape_.hidden,
               shape_.norm_parameters(shape_.hidden));
    ops.held = source * shape_.hidden;
    Op& tokens =
        ops.embedding("embedding.tokens", Split::vocabulary, target, width_, c_.vocabulary);
    tokens.parameters = 0;  // the encoder's table
    // The encoder's output, kept for the cross attention of all blocks.
    tokens.saved = source * shape_.hidden;
    add_learned_positions(ops, target);
    if (has_bias_of_stack()) add_relative_bias(ops, target * shape_.hidden);
    if (c_.embedding_norm)
      ops.norm("embedding.norm", Split::replicated, target, shape_.hidden,
               shape_.norm_parameters(shape_.hidden));
    if (c_.dropout) {
      const double streams = (source + target) * shape_.hidden;
      ops.held = 0;
      ops.elementwise("embedding.dropout", Split::replicated, streams, streams).saved_mask =
          Bytes(streams);
    }
    return ops.take("decoder_embedding");
  }

  LayerKind head(double positions) {
    OpList ops;
    if (c_.final_norm)
      ops.norm("head.norm", Split::replicated, positions, shape_.hidden,
               shape_.norm_parameters(shape_.hidden));
    if (c_.pooler > 0) {
      ops.held += positions * shape_.hidden;
      ops.matmul("head.pooler", Split::replicated, 1, shape_.hidden, c_.pooler, true);
      ops.held -= positions * shape_.hidden;
    }
    if (c_.head == Head::masked || c_.head == Head::pretraining) {
      const double width = embedded_width();
      const double stream = positions * width;
      ops.matmul("head.dense", Split::replicated, positions, shape_.hidden, width,
                 c_.classifier_bias);
      Op& activation = ops.elementwise("head.activation", Split::replicated, stream, stream);
      activation.saved = stream;
      activation.function = c_.activation;
      ops.norm("head.transform_norm", Split::replicated, positions, width,
               shape_.norm_parameters(width));
    }
    if (has_logits() && width_ != embedded_width()) {
      ops.matmul("head.projection", Split::replicated, positions, shape_.hidden, width_, false);
    }
    logits_op_ = ops.size();
    add_outputs(ops, positions);
    return ops.take("head");
  }

  void add_outputs(OpList& ops, double positions) const {
    if (has_logits()) {
      const double classes = c_.vocabulary;
      Op& logits =
          ops.matmul("head.logits", Split::vocabulary, positions, width_, classes, c_.head_bias);
      if (c_.tied) logits.parameters = c_.head_bias ? classes : 0;
      logits.parameters += c_.unused_parameters;
      logits.backward_reduce = positions * width_;
      ops.loss("head.loss", Split::vocabulary, positions, classes);
    }
    if (c_.head == Head::pretraining)
      ops.matmul("head.next_sentence", Split::replicated, 1, shape_.hidden, 2, true);
    if (c_.head == Head::classifier) {
      ops.matmul("head.classifier", Split::replicated, 1, shape_.hidden, c_.classes,
                 c_.classifier_bias);
      ops.loss("head.loss", Split::replicated, 1, c_.classes);
    }
    if (c_.head == Head::none) {
      const double stream = positions * shape_.hidden;
      ops.elementwise("head.output", Split::replicated, stream, 0);
    }
  }

  const TransformerConfig& c_;
  const TransformerConfig decoder_config_;
  const BlockShape shape_;
  const BlockShape decoder_shape_;
  const double width_;       // of the token table
  std::vector<bool> dense_;  // by layer: has no experts whatever the pattern says
  Model model_;
  int logits_op_ = 0;
};

}  // namespace

Model build_transformer(const TransformerConfig& config) { return ModelWriter(config).write(); }

}  // namespace plait
