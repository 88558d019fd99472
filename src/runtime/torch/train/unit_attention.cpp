#include <limits>

#include "runtime/torch/comm/kernels.h"
#include "runtime/torch/train/unit_ops.h"

namespace plait::runtime {

const at::Tensor& UnitModule::buckets(const Held& held, const at::Tensor& like) {
  if (!held.buckets.defined())
    held.buckets = relative_buckets(held.op->positions, held.weight.size(1),
                                    held.op->relative_distance, held.op->causal)
                       .to(like.device());
  return held.buckets;
}

const at::Tensor& UnitModule::mask(const ExecOp& op, const at::Tensor& queries) {
  at::Tensor& mask = masks_[{op.alibi, op.window}];
  if (!mask.defined()) {
    const std::int64_t count = queries.size(-1) / op.head_dim;
    const at::Tensor bias = op.alibi
                                ? alibi_bias(op.heads, shard_.rank * count, count, op.positions)
                                : at::zeros({1, op.positions, op.positions}, at::kDouble);
    mask = bias.masked_fill(unseen_keys(op.positions, op.window),
                            -std::numeric_limits<double>::infinity())
               .to(queries.options().requires_grad(false));
  }
  return mask;
}

const std::pair<at::Tensor, at::Tensor>& UnitModule::angles(const Held& held,
                                                            const at::Tensor& like) {
  if (!held.angles.first.defined())
    held.angles = turning_angles(held.op->positions, held.op->rotary_dim, held.op->rotary,
                                 like.options().requires_grad(false));
  return held.angles;
}

void UnitModule::run_attention(const Held& held, Bundle& bundle) {
  const ExecOp& op = *held.op;
  const auto set_parts = [&](const at::Tensor& all, std::vector<std::string> names) {
    const bool other = op.other != OtherCut::none;
    const std::vector<Interval> mine =
        shard_of(other ? op.usual_parts : op.parameters[0].parts, shard_.tensor, shard_.rank);
    std::vector<std::int64_t> sizes;
    for (const Interval& interval : mine) sizes.push_back(interval.size());
    const std::vector<at::Tensor> parts = at::split_with_sizes(all, sizes, -1);
    for (std::size_t i = 0; i < names.size(); ++i) bundle[names[i]] = parts[i];
  };
  const auto by_head = [&](const at::Tensor& x) {
    return x.unflatten(-1, {x.size(-1) / op.head_dim, op.head_dim});
  };
  switch (op.kind) {
    case ExecOpKind::queries_keys_values:
      return set_parts(column_product(held, take(bundle, "x")), {"q", "k", "v"});
    case ExecOpKind::cross_queries:
      return set_parts(column_product(held, take(bundle, "x")), {"q"});
    case ExecOpKind::cross_keys_values:
      return set_parts(column_product(held, bundle.at("memory")), {"k", "v"});
    case ExecOpKind::qk_norm: {
      const bool layer = op.function == Function::layer_norm;
      const at::Tensor& key_weight = held.others[layer ? 1 : 0];
      const at::Tensor none;
      bundle["q"] = normalise(by_head(bundle.at("q")), op.function, held.weight,
                              layer ? held.others[0] : none, op.epsilon)
                        .flatten(2);
      bundle["k"] = normalise(by_head(bundle.at("k")), op.function, key_weight,
                              layer ? held.others[2] : none, op.epsilon)
                        .flatten(2);
      return;
    }
    case ExecOpKind::rotary: {
      const auto& [cosine, sine] = angles(held, bundle.at("q"));
      for (const char* name : {"q", "k"})
        bundle[name] =
            turn(by_head(bundle.at(name)), cosine, sine, op.rotary.neighbours).flatten(2);
      return;
    }
    default:
      break;
  }
  const at::Tensor q = take(bundle, "q"), k = take(bundle, "k"), v = take(bundle, "v");
  at::Tensor bias;
  if (held.weight.defined()) bias = by_query_and_key(held.weight.index_select(1, buckets(held, q)));
  const bool masked = op.alibi || op.window > 0;
  if (masked) bias = bias.defined() ? bias + mask(op, q) : mask(op, q);
  bundle["x"] = attend(q, k, v, bias,
                       {.head_dim = op.head_dim,
                        .causal = op.causal && !masked,
                        .scale = op.scale,
                        .cap = op.cap,
                        .plain = plain_});
}

}  // namespace plait::runtime
