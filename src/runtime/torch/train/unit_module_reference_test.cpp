// Decoders written down plainly, in fp64, from the configuration alone: what UnitModule must
// compute.

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "runtime/lower/tiny_models.h"
#include "runtime/torch/train/unit_module.h"

namespace plait::runtime {
namespace {

using Weights = std::map<std::string, at::Tensor>;

bool contains(const std::vector<int>& list, int item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

class PlainDecoder {
 public:
  PlainDecoder(const TransformerConfig& config, const Weights& weights)
      : c_(config),
        weights_(weights),
        head_(c_.head_dim > 0 ? c_.head_dim : c_.hidden / c_.heads) {}

  // Mean loss of each sample.
  at::Tensor loss(const at::Tensor& tokens, const at::Tensor& labels) {
    at::Tensor x = weight("0.embedding.tokens").index_select(0, tokens.flatten());
    x = x.view({tokens.size(0), tokens.size(1), -1}) * c_.embedding_scale;
    if (c_.positions == Positions::learned)
      x = x + weight("0.embedding.positions")
                  .slice(0, c_.position_offset, c_.position_offset + x.size(1));
    if (c_.embedding_norm) x = norm(x, "0.embedding.norm");
    for (int layer = 0; layer < c_.layers; ++layer) x = block(x, layer);
    const std::string last = std::to_string(c_.layers + 1);
    x = norm(x, last + ".head.norm");
    const at::Tensor table = c_.tied ? weight("0.embedding.tokens") : weight(last + ".head.logits");
    at::Tensor logits = at::matmul(x, table.t()) * c_.logit_scale;
    if (c_.logit_cap > 0) logits = c_.logit_cap * (logits / c_.logit_cap).tanh();
    const at::Tensor chances = logits.log_softmax(-1);
    return -chances.gather(-1, labels.unsqueeze(-1)).squeeze(-1).mean(-1, true);
  }

 private:
  at::Tensor weight(const std::string& name, const char* what = "weight") {
    const auto found = weights_.find(name + "." + what);
    return found == weights_.end() ? at::Tensor() : found->second;
  }

  at::Tensor norm(const at::Tensor& x, const std::string& name) {
    const bool layer = c_.norm == NormKind::layer;
    const at::Tensor centred = layer ? x - x.mean(-1, true) : x;
    at::Tensor out = centred / (centred.square().mean(-1, true) + c_.norm_epsilon).sqrt();
    out = out * weight(name);
    const at::Tensor shift = weight(name, "bias");
    return shift.defined() ? out + shift : out;
  }

  at::Tensor product(const at::Tensor& x, const std::string& name) {
    const at::Tensor out = at::matmul(x, weight(name).t());
    const at::Tensor bias = weight(name, "bias");
    return bias.defined() ? out + bias : out;
  }

  at::Tensor block(const at::Tensor& x, int layer) {
    const std::string number = std::to_string(layer + 1) + ".";
    const bool sandwich = c_.norm_place == NormPlace::sandwich;
    at::Tensor inner = attention(norm(x, number + "attention.norm"), layer);
    if (sandwich) inner = norm(inner, number + "attention.norm_out");
    const at::Tensor middle = x + c_.residual_scale * inner;
    inner = mlp(norm(middle, number + "mlp.norm"), number + "mlp");
    if (sandwich) inner = norm(inner, number + "mlp.norm_out");
    return middle + c_.residual_scale * inner;
  }

  at::Tensor mlp(const at::Tensor& x, const std::string& name) {
    const at::Tensor up = product(x, name + ".up");
    const std::int64_t ffn = c_.gated ? up.size(-1) / 2 : up.size(-1);
    const at::Tensor open = up.narrow(-1, 0, ffn);
    at::Tensor inner =
        c_.activation == Function::silu
            ? open * open.sigmoid()
            : open * 0.5 * (1 + (std::sqrt(2 / M_PI) * (open + 0.044715 * open.pow(3))).tanh());
    if (c_.gated) inner = inner * up.narrow(-1, ffn, ffn);
    return product(inner, name + ".down");
  }

  // The angle of pair `i` at a position, from the wave length as Llama 3 tells it.
  double angle(std::int64_t position, int i, bool windowed) const {
    const Rotary& r = c_.rotary;
    const bool local = windowed && r.local_base > 0;
    const int turned = c_.rotary_dim > 0 ? c_.rotary_dim : head_;
    const double frequency = std::pow(local ? r.local_base : r.base, -2.0 * i / turned);
    const double far = static_cast<double>(position);
    if (local || r.scaling == RotaryScaling::none) return far * frequency;
    if (r.scaling == RotaryScaling::linear) return far / r.factor * frequency;
    const double wave = 2 * M_PI / frequency;
    if (wave < r.trained_positions / r.high_factor) return far * frequency;
    if (wave > r.trained_positions / r.low_factor) return far * frequency / r.factor;
    const double smooth =
        (r.trained_positions / wave - r.low_factor) / (r.high_factor - r.low_factor);
    return far * ((1 - smooth) * frequency / r.factor + smooth * frequency);
  }

  // One head of one sample, [positions, features].
  at::Tensor turn(const at::Tensor& x, bool windowed) const {
    const int turned = c_.rotary_dim > 0 ? c_.rotary_dim : head_;
    at::Tensor out = x.clone();
    for (std::int64_t p = 0; p < x.size(0); ++p)
      for (int i = 0; i < turned / 2; ++i) {
        const int a = c_.rotary.neighbours ? 2 * i : i;
        const int b = c_.rotary.neighbours ? 2 * i + 1 : i + turned / 2;
        const double t = angle(p, i, windowed);
        out[p][a] = x[p][a] * std::cos(t) - x[p][b] * std::sin(t);
        out[p][b] = x[p][b] * std::cos(t) + x[p][a] * std::sin(t);
      }
    return out;
  }

  // From the paper of ALiBi: a geometric sequence for powers of 2, else every second of the next.
  double slope(int head) const {
    int power = 1;
    while (2 * power <= c_.heads) power *= 2;
    if (head < power) return std::pow(2.0, -8.0 * (head + 1) / power);
    return std::pow(2.0, -8.0 * (2 * (head - power) + 1) / (2 * power));
  }

  at::Tensor attention(const at::Tensor& x, int layer) {
    const std::string name = std::to_string(layer + 1) + ".attention.";
    const int kv = c_.kv_heads > 0 ? c_.kv_heads : c_.heads;
    const at::Tensor all = product(x, name + "qkv");
    const bool windowed = c_.window.size > 0 && !contains(c_.window.full, layer);
    const bool turned = c_.positions == Positions::rotary && !contains(c_.rotary.unturned, layer);
    const double scale = c_.attention_scale > 0 ? c_.attention_scale : 1 / std::sqrt(1.0 * head_);
    std::vector<at::Tensor> samples;
    for (std::int64_t s = 0; s < x.size(0); ++s) {
      std::vector<at::Tensor> heads;
      for (int h = 0; h < c_.heads; ++h) {
        const int g = h / (c_.heads / kv);
        at::Tensor q = all[s].narrow(-1, h * head_, head_);
        at::Tensor k = all[s].narrow(-1, (c_.heads + g) * head_, head_);
        const at::Tensor v = all[s].narrow(-1, (c_.heads + kv + g) * head_, head_);
        if (turned) q = turn(q, windowed);
        if (turned) k = turn(k, windowed);
        at::Tensor scores = at::matmul(q, k.t()) * scale;
        if (c_.score_cap > 0) scores = c_.score_cap * (scores / c_.score_cap).tanh();
        for (std::int64_t i = 0; i < scores.size(0); ++i)
          for (std::int64_t j = 0; j < scores.size(1); ++j) {
            if (c_.positions == Positions::alibi) scores[i][j] += slope(h) * double(j - i);
            if (j > i || (windowed && j <= i - c_.window.size)) scores[i][j] = -1e30;
          }
        heads.push_back(at::matmul(scores.softmax(-1), v));
      }
      samples.push_back(at::cat(heads, -1));
    }
    return product(at::stack(samples), name + "projection");
  }

  const TransformerConfig& c_;
  const Weights& weights_;
  const int head_;
};

TEST(UnitModule, ComputesTheDecodersThatConfigurationsDescribe) {
  c10::NoGradGuard no_gradients;
  at::manual_seed(4);
  for (TransformerConfig config :
       {samples::tiny_gpt(), samples::tiny_llama(), samples::tiny_alibi(), samples::tiny_capped(),
        samples::tiny_scaled(), samples::tiny_offset()}) {
    config.layers = std::min(config.layers, 3);
    const ExecProgram program = lower(build_transformer(config)).program;
    AbsentGroup alone;
    for (const bool plain : {true, false}) {
      UnitModule whole(program, {0, static_cast<int>(program.ops.size())}, {}, alone,
                       separate_parameters({}, at::kDouble, 5), plain);
      Weights weights;
      for (const LocalParameter& p : whole.parameters()) {
        const at::Tensor value = p.value.detach();
        // So that attention has something to choose; scales and shifts are not all alike.
        if (p.parameter.owned && p.parameter.start == Start::normal) value.mul_(5);
        if (p.parameter.start != Start::normal) value.add_(at::randn_like(value), 0.1);
        weights[p.parameter.name] = value;
      }
      const Batch batch = noise_batch(program, 2, at::kDouble, 7);
      const at::Tensor got = whole.forward({}, batch).at("loss");
      const at::Tensor wanted = PlainDecoder(config, weights).loss(batch.tokens, batch.labels);
      EXPECT_LT((got - wanted).abs().max().item<double>(), 1e-9) << config.name;
      EXPECT_GT(wanted.abs().min().item<double>(), 0.1) << config.name;
    }
  }
}

}  // namespace
}  // namespace plait::runtime
