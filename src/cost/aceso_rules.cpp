#include "cost/aceso_rules.h"

#include <algorithm>
#include <string_view>

namespace plait {
namespace {

bool mentions(const std::string& name, std::string_view word) {
  return name.find(word) != name.npos;
}

bool is_any(const std::string& name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

AcesoLayout whole(int tensor, int data) { return {tensor, {1, data, 1}, true}; }
AcesoLayout by_feature(int tensor, int data) { return {1, {1, data, tensor}, true}; }
AcesoLayout by_head(int tensor, int data) { return {1, {data, tensor, 1}, true}; }
AcesoLayout by_sample(int tensor, int data) { return {tensor, {data, 1, 1}, true}; }

}  // namespace

AcesoRule aceso_rule(const std::string& op) {
  AcesoRule rule;
  if (op == "enc-attention-dropout") rule.activation_share = 1.5;
  // "0-0" is looked for anywhere in the name: the real down-sampling convolutions of later stages
  // count nothing either (study 2.9.6).
  if (is_any(op, {"enc-attention-softmax", "bn1"}) || mentions(op, "-bn3") ||
      (mentions(op, "-downsample") && !mentions(op, "0-0")))
    rule.activation_share = 0;
  rule.starts_segment = op == "enc-1st-layernorm" || mentions(op, "-conv1");
  rule.recomputable = !is_any(op, {"encoder-embedding", "decoder-embedding", "gpt-post-process",
                                   "t5-post-process", "conv1"});
  rule.recompute_first = rule.recomputable && !rule.starts_segment && !mentions(op, "-relu");
  if (mentions(op, "conv") || mentions(op, "downsample") || op == "enc-attention-qkv")
    rule.algorithms = 2;
  return rule;
}

AcesoLayout aceso_layout(const std::string& op, int tensor, int data, int algorithm, bool input) {
  const bool first = (algorithm == 0) == input;
  if (op == "encoder-embedding") return input ? AcesoLayout{} : whole(tensor, data);
  if (op == "gpt-post-process") return input ? by_sample(tensor, data) : AcesoLayout{};
  if (is_any(op, {"enc-1st-layernorm", "enc-2nd-layernorm", "enc-post-attention-dropout",
                  "enc-post-MLP-dropout"}))
    return whole(tensor, data);
  if (op == "final-layernorm") return input ? whole(tensor, data) : by_sample(tensor, data);
  // Columns by default: the whole input, a part of the output. Rows are the other way round. Only
  // qkv can really be cut both ways, but all four are costed as if they could (study 2.9.7).
  if (is_any(op, {"enc-attention-qkv", "enc-MLP-GEMM-1"}))
    return first ? whole(tensor, data) : by_feature(tensor, data);
  if (is_any(op, {"enc-attention-dense", "enc-MLP-GEMM-2"}))
    return first ? by_feature(tensor, data) : whole(tensor, data);
  if (op == "enc-attention-score") return input ? by_feature(tensor, data) : by_head(tensor, data);
  if (is_any(op, {"enc-attention-softmax", "enc-attention-dropout"})) return by_head(tensor, data);
  if (op == "enc-attention-context")
    return input ? by_head(tensor, data) : by_feature(tensor, data);
  if (op == "enc-MLP-gelu") return by_feature(tensor, data);
  return by_sample(tensor, data);
}

AcesoReshard aceso_reshard(const AcesoLayout& from, const AcesoLayout& to) {
  if (!from.known || !to.known || from == to) return {};
  if (from.copies > to.copies) {
    for (int d = 0; d < 3; ++d)
      if (from.parts[d] < to.parts[d]) return {"split", "all_gather", from.copies / to.copies};
    return {};
  }
  for (int d = 0; d < 3; ++d) {
    if (from.parts[d] <= to.parts[d]) continue;
    const int members = from.parts[d] / to.parts[d];
    if (from.copies < to.copies) return {"all_gather", "split", members};
    for (int other = 0; other < 3; ++other)
      if (other != d && from.parts[other] < to.parts[other])
        return {"all_to_all", "all_to_all", members};
  }
  return {};
}

}  // namespace plait
