#include "runtime/torch/train/unit_module.h"

#include <ATen/ATen.h>

#include <cmath>
#include <memory>

#include "base/error.h"
#include "runtime/torch/comm/kernels.h"
#include "runtime/torch/train/unit_ops.h"

namespace plait::runtime {

UnitModule::UnitModule(const ExecProgram& program, Range range, const ShardSpec& shard,
                       TensorGroup& group, const ParameterSource& source, bool plain)
    : program_(program), range_(range), shard_(shard), group_(group), plain_(plain) {
  PLAIT_CHECK(shard.tensor == group.size() && shard.rank == group.rank());
  for (int i = range.begin; i < range.end; ++i) {
    Held held;
    held.op = &program.ops[i];
    for (std::size_t p = 0; p < held.op->parameters.size(); ++p) {
      const Parameter& parameter = held.op->parameters[p];
      at::Tensor value = source(parameter);
      parameters_.push_back({parameter, value});
      if (p == 0)
        held.weight = value;
      else if (parameter.name.ends_with(".bias"))
        held.bias = value;
      else
        held.others.push_back(value);
    }
    held_.push_back(std::move(held));
  }
}

UnitModule::~UnitModule() = default;
UnitModule::UnitModule(UnitModule&&) noexcept = default;

Bundle UnitModule::forward(Bundle bundle, const Batch& batch, Range part) {
  PLAIT_CHECK(part.begin >= range_.begin && part.end <= range_.end);
  for (int i = part.begin; i < part.end; ++i) {
    const Held& held = held_[i - range_.begin];
    if (i == 0 && held.op->kind == ExecOpKind::convolution)
      bundle["x"] = batch.images.to(held.weight.scalar_type());
    if (held.op->begins_branch) bundle["residual"] = bundle.at("x");
    if (held.op->keeps_memory) bundle["memory"] = bundle.at("x");
    if (held.op->keeps_input) bundle["input"] = bundle.at("x");
    if (held.op->reads_input || held.op->reads_residual) {
      bundle["routed"] = bundle.at("x");
      bundle["x"] = held.op->reads_input ? take(bundle, "input") : bundle.at("residual");
    }
    run(held, bundle, batch);
  }
  return bundle;
}

void UnitModule::run(const Held& held, Bundle& bundle, const Batch& batch) {
  const ExecOp& op = *held.op;
  switch (op.kind) {
    case ExecOpKind::nothing:
    case ExecOpKind::relative_bias:
      return;
    case ExecOpKind::tokens:
    case ExecOpKind::positions:
    case ExecOpKind::types:
    case ExecOpKind::patches:
    case ExecOpKind::class_token:
      return run_embedding(held, bundle, batch);
    case ExecOpKind::norm:
      bundle["x"] = normalise(bundle.at("x"), op.function, held.weight, held.bias, op.epsilon);
      return;
    case ExecOpKind::dense:
      bundle["x"] = linear(bundle.at("x"), held.weight, held.bias);
      return;
    case ExecOpKind::column:
      bundle["x"] = column_product(held, bundle.at("x"));
      return;
    case ExecOpKind::row:
      if (op.other != OtherCut::none) {
        bundle["x"] = column_product(held, bundle.at("x"));
        return;
      }
      bundle["x"] = row_product(bundle.at("x"), held.weight, held.bias, group_.size() == 1,
                                [this](const at::Tensor& x) { return leave(x); });
      return;
    case ExecOpKind::activation:
      bundle["x"] = activate(bundle.at("x"), op.function, op.gated);
      return;
    case ExecOpKind::residual: {
      at::Tensor sum = take(bundle, "residual") + scaled(bundle.at("x"), op.scale);
      if (bundle.contains("routed")) sum = sum + scaled(take(bundle, "routed"), op.scale);
      bundle["x"] = sum;
      return;
    }
    case ExecOpKind::queries_keys_values:
    case ExecOpKind::cross_queries:
    case ExecOpKind::cross_keys_values:
    case ExecOpKind::qk_norm:
    case ExecOpKind::rotary:
    case ExecOpKind::attention:
      return run_attention(held, bundle);
    case ExecOpKind::router:
    case ExecOpKind::top_k:
    case ExecOpKind::experts_up:
    case ExecOpKind::experts_activation:
    case ExecOpKind::experts_down:
    case ExecOpKind::combine:
    case ExecOpKind::shared_gate:
    case ExecOpKind::shared_add:
      return run_experts(held, bundle);
    case ExecOpKind::pooler:
    case ExecOpKind::next_sentence:
    case ExecOpKind::classifier:
    case ExecOpKind::logits:
    case ExecOpKind::loss:
      return run_head(held, bundle, batch);
    default:
      return run_convolution(held, bundle);
  }
}

at::Tensor UnitModule::column_product(const Held& held, const at::Tensor& x) {
  const ExecOp& op = *held.op;
  if (op.other == OtherCut::none) return linear(enter(x), held.weight, held.bias);
  const at::Tensor out =
      cut_otherwise(op, x, 2, [&](const at::Tensor& own) { return at::linear(own, held.weight); });
  return held.bias.defined() ? out + held.bias : out;
}

void UnitModule::run_embedding(const Held& held, Bundle& bundle, const Batch& batch) {
  const ExecOp& op = *held.op;
  if (op.kind == ExecOpKind::patches) {
    const at::Tensor maps =
        at::conv2d(batch.images.to(held.weight.scalar_type()), held.weight, held.bias, op.stride);
    bundle["x"] = maps.flatten(2).transpose(1, 2).contiguous();
    return;
  }
  if (op.kind == ExecOpKind::class_token) {
    const at::Tensor x = bundle.at("x");
    const at::Tensor first = held.weight.view({1, -1, x.size(2)});
    bundle["x"] = at::cat({first.expand({x.size(0), -1, -1}), x}, 1);
    return;
  }
  if (op.kind == ExecOpKind::tokens) {
    const at::Tensor& tokens = op.keeps_memory ? batch.target : batch.tokens;
    if (group_.size() == 1) {
      bundle["x"] = scaled(at::embedding(held.weight, tokens), op.scale);
      return;
    }
    const Interval mine = shard_of(op.parameters[0].parts, shard_.tensor, shard_.rank)[0];
    const at::Tensor here = tokens.ge(mine.begin).logical_and(tokens.lt(mine.end)).unsqueeze(-1);
    const at::Tensor rows =
        at::embedding(held.weight, tokens.sub(mine.begin).clamp(0, mine.size() - 1));
    bundle["x"] = scaled(leave(rows * here.to(rows.scalar_type())), op.scale);
    return;
  }
  const at::Tensor x = bundle.at("x");
  const std::int64_t first = shard_.cuts_positions() ? shard_.rank * x.size(1) : 0;
  if (op.kind == ExecOpKind::positions)
    bundle["x"] = x + held.weight.narrow(0, op.first_row + first, x.size(1));
  else
    bundle["x"] = x + at::embedding(held.weight, batch.types.narrow(1, first, x.size(1)));
}

// The experts work on visits: tokens sorted by the expert that they chose. "chosen" is the expert
// and "weights" the share of each visit; "order" says which visit is where, "ends" where the visits
// of each expert end. None of it leaves the device, so that the host goes on launching.
void UnitModule::run_experts(const Held& held, Bundle& bundle) {
  const ExecOp& op = *held.op;
  switch (op.kind) {
    case ExecOpKind::router:
      bundle["scores"] = linear(bundle.at("x"), held.weight, held.bias);
      return;
    case ExecOpKind::top_k: {
      const at::Tensor scores = take(bundle, "scores");
      const at::Tensor wide = scores.to(wide_type(scores.scalar_type()));
      const auto [values, chosen] = at::topk(wide, op.chosen);
      const at::Tensor shares =
          op.normalised ? at::softmax(values, -1) : at::softmax(wide, -1).gather(-1, chosen);
      bundle["weights"] = scaled(shares, op.scale).to(bundle.at("x").scalar_type());
      bundle["chosen"] = chosen;
      return;
    }
    case ExecOpKind::experts_up: {
      const at::Tensor x = enter(bundle.at("x"));
      bundle["weights"] = enter(bundle.at("weights"));
      at::Tensor chosen = take(bundle, "chosen");
      if (shard_.cuts_positions()) chosen = group_.all_gather(chosen, 1);
      const auto [sorted, order] = chosen.flatten().sort();
      const at::Tensor experts = at::arange(op.experts, sorted.options());
      bundle["ends"] = at::searchsorted(sorted, experts, /*out_int32=*/true, /*right=*/true);
      bundle["order"] = order;
      const at::Tensor token = order.div(chosen.size(-1), "floor");
      bundle["x"] = expert_products(x.flatten(0, 1).index_select(0, token), held.weight, held.bias,
                                    bundle.at("ends"));
      return;
    }
    case ExecOpKind::experts_activation:
      bundle["x"] = activate(bundle.at("x"), op.function, op.gated);
      return;
    case ExecOpKind::experts_down: {
      const at::Tensor none;
      bundle["x"] = expert_products(bundle.at("x"), held.weight,
                                    shard_.rank == 0 ? held.bias : none, take(bundle, "ends"));
      return;
    }
    case ExecOpKind::combine: {
      const at::Tensor visits = take(bundle, "x");
      const at::Tensor weights = take(bundle, "weights");
      const at::Tensor order = take(bundle, "order");
      const at::Tensor share = weights.flatten().index_select(0, order).unsqueeze(-1);
      const std::int64_t tokens = weights.size(0) * weights.size(1);
      const at::Tensor sum =
          at::zeros({tokens, visits.size(1)}, visits.options())
              .index_add(0, order.div(weights.size(-1), "floor"), visits * share);
      bundle["x"] = leave(sum.view({weights.size(0), weights.size(1), visits.size(1)}));
      return;
    }
    case ExecOpKind::shared_gate:
      bundle["gate"] = linear(bundle.at("input"), held.weight, held.bias);
      return;
    default: {
      at::Tensor shared = bundle.at("x");
      if (bundle.contains("gate")) shared = shared * at::sigmoid(take(bundle, "gate"));
      bundle["x"] = take(bundle, "routed") + shared;
      return;
    }
  }
}

// With positions cut, the first is on the first device.
at::Tensor UnitModule::first_position(const at::Tensor& x) {
  const at::Tensor first = x.narrow(1, 0, 1);
  if (!shard_.cuts_positions()) return first;
  return leave_region(first * (shard_.rank == 0 ? 1.0 : 0.0), group_, false);
}

void UnitModule::run_head(const Held& held, Bundle& bundle, const Batch& batch) {
  const ExecOp& op = *held.op;
  switch (op.kind) {
    case ExecOpKind::pooler:
      bundle["pooled"] = at::tanh(linear(first_position(bundle.at("x")), held.weight, held.bias));
      return;
    case ExecOpKind::classifier: {
      const at::Tensor x =
          bundle.contains("pooled") ? take(bundle, "pooled") : first_position(bundle.at("x"));
      bundle["x"] = linear(x, held.weight, held.bias);
      return;
    }
    case ExecOpKind::next_sentence: {
      const at::Tensor scores = linear(take(bundle, "pooled"), held.weight, held.bias)
                                    .squeeze(1)
                                    .to(bundle.at("loss").scalar_type());
      bundle["loss"] =
          bundle.at("loss") +
          at::cross_entropy_loss(scores, batch.follows, {}, at::Reduction::None).unsqueeze(-1);
      return;
    }
    case ExecOpKind::logits: {
      const at::Tensor logits = linear(enter(bundle.at("x")), held.weight, held.bias);
      bundle["x"] = capped(scaled(logits, op.scale), op.cap);
      return;
    }
    default:
      break;
  }
  const at::Tensor logits = take(bundle, "x");
  at::Tensor each;
  if (op.cut && group_.size() > 1) {
    const Interval mine = shard_of({{op.classes, 0}}, shard_.tensor, shard_.rank)[0];
    each = cut_cross_entropy(logits, batch.labels, mine.begin, group_);
  } else {
    each = cross_entropy(logits.flatten(0, 1), batch.labels.flatten()).view(batch.labels.sizes());
  }
  each = batch.weights.defined() ? (each * batch.weights).sum(1, true) : each.mean(1, true);
  bundle.erase("memory");
  bundle["loss"] = each;
}

void UnitModule::run_convolution(const Held& held, Bundle& bundle) {
  const ExecOp& op = *held.op;
  const bool skip = op.kind == ExecOpKind::skip || op.kind == ExecOpKind::skip_norm;
  at::Tensor& x = bundle[skip ? "residual" : "x"];
  switch (op.kind) {
    case ExecOpKind::convolution:
    case ExecOpKind::skip: {
      const auto convolve = [&](const at::Tensor& maps) {
        return at::conv2d(maps, held.weight, {}, op.stride, (op.kernel - 1) / 2);
      };
      if (op.other != OtherCut::none) {
        x = cut_otherwise(op, x, 1, convolve);
        return;
      }
      const int cut = op.parameters[0].dim;
      const at::Tensor input = cut == 0 ? enter_region(x, group_, false) : x;
      const at::Tensor output = convolve(input);
      x = cut == 1 ? leave_region(output, group_, false) : output;
      if (op.gathers) x = gather_features(x, group_, 1);
      return;
    }
    case ExecOpKind::batch_norm:
    case ExecOpKind::skip_norm:
      x = normalise_maps(x, held.weight, held.bias);
      return;
    case ExecOpKind::relu:
      x = at::relu(x);
      return;
    case ExecOpKind::max_pool:
      x = at::max_pool2d(x, 3, 2, 1);
      return;
    case ExecOpKind::add_relu:
      x = at::relu(x + take(bundle, "residual"));
      return;
    case ExecOpKind::average_pool:
      x = x.mean({2, 3}).unsqueeze(1);
      return;
    default:
      PLAIT_CHECK(false);
  }
}

}  // namespace plait::runtime
