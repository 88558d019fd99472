#include "plan/names.h"

#include <algorithm>
#include <cctype>

namespace plait {
namespace {

using Names = std::vector<std::string_view>;

char plain(char c) {
  return c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

template <typename Enum>
std::optional<Enum> find(const Names& names, std::string_view name) {
  const auto same = [&](std::string_view known) {
    return std::ranges::equal(known, name, {}, plain, plain);
  };
  const auto it = std::ranges::find_if(names, same);
  if (it == names.end()) return std::nullopt;
  return static_cast<Enum>(it - names.begin());
}

}  // namespace

const Names& schedule_names() {
  static const Names names = {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-2p", "zb-v"};
  return names;
}

const Names& recompute_names() {
  static const Names names = {"none", "selective", "full"};
  return names;
}

const Names& zero_stage_names() {
  static const Names names = {"0", "1", "2", "3"};
  return names;
}

const Names& precision_names() {
  static const Names names = {"fp32", "tf32", "fp16", "bf16", "pure-bf16", "fp8", "fp8-row", "fp4"};
  return names;
}

const Names& optimizer_names() {
  static const Names names = {"adam", "sgd", "momentum", "adam8bit"};
  return names;
}

const Names& attention_names() {
  static const Names names = {"flash", "plain"};
  return names;
}

const Names& dtype_names() {
  static const Names names = {"fp32", "tf32", "fp16", "bf16", "fp8"};
  return names;
}

const Names& flash_kernel_names() {
  static const Names names = {"first", "second", "native"};
  return names;
}

const Names& op_kind_names() {
  static const Names names = {"matmul",      "attention", "convolution", "norm",
                              "elementwise", "embedding", "loss",        "reduction"};
  return names;
}

const Names& function_names() {
  static const Names names = {"other", "add",       "layer-norm", "rms-norm",
                              "gelu",  "gelu-tanh", "gelu-new",   "quick-gelu",
                              "relu",  "silu",      "rotary",     "gelu-twice"};
  return names;
}

const Names& split_names() {
  static const Names names = {"replicated", "column",  "row",  "heads",
                              "vocabulary", "experts", "shard"};
  return names;
}

const Names& tensor_layout_names() {
  static const Names names = {"whole", "by-feature", "by-position", "partial-sums"};
  return names;
}

std::string_view name_of(Schedule value) {
  return schedule_names()[static_cast<std::size_t>(value)];
}
std::string_view name_of(Recompute value) {
  return recompute_names()[static_cast<std::size_t>(value)];
}
std::string_view name_of(ZeroStage value) {
  return zero_stage_names()[static_cast<std::size_t>(value)];
}
std::string_view name_of(Precision value) {
  return precision_names()[static_cast<std::size_t>(value)];
}
std::string_view name_of(Optimizer value) {
  return optimizer_names()[static_cast<std::size_t>(value)];
}
std::string_view name_of(AttentionKernel value) {
  return attention_names()[static_cast<std::size_t>(value)];
}
std::string_view name_of(FlashKernel value) {
  return flash_kernel_names()[static_cast<std::size_t>(value)];
}
std::string_view name_of(DType value) { return dtype_names()[static_cast<std::size_t>(value)]; }
std::string_view name_of(OpKind value) { return op_kind_names()[static_cast<std::size_t>(value)]; }
std::string_view name_of(Function value) {
  return function_names()[static_cast<std::size_t>(value)];
}
std::string_view name_of(Split value) { return split_names()[static_cast<std::size_t>(value)]; }
std::string_view name_of(TensorLayout value) {
  return tensor_layout_names()[static_cast<std::size_t>(value)];
}

std::optional<Schedule> schedule_named(std::string_view name) {
  return find<Schedule>(schedule_names(), name);
}
std::optional<Recompute> recompute_named(std::string_view name) {
  return find<Recompute>(recompute_names(), name);
}
std::optional<ZeroStage> zero_stage_named(std::string_view name) {
  return find<ZeroStage>(zero_stage_names(), name);
}
std::optional<Precision> precision_named(std::string_view name) {
  return find<Precision>(precision_names(), name);
}
std::optional<Optimizer> optimizer_named(std::string_view name) {
  return find<Optimizer>(optimizer_names(), name);
}
std::optional<AttentionKernel> attention_named(std::string_view name) {
  return find<AttentionKernel>(attention_names(), name);
}
std::optional<FlashKernel> flash_kernel_named(std::string_view name) {
  return find<FlashKernel>(flash_kernel_names(), name);
}
std::optional<DType> dtype_named(std::string_view name) { return find<DType>(dtype_names(), name); }
std::optional<OpKind> op_kind_named(std::string_view name) {
  return find<OpKind>(op_kind_names(), name);
}
std::optional<Function> function_named(std::string_view name) {
  return find<Function>(function_names(), name);
}
std::optional<Split> split_named(std::string_view name) { return find<Split>(split_names(), name); }
std::optional<TensorLayout> tensor_layout_named(std::string_view name) {
  return find<TensorLayout>(tensor_layout_names(), name);
}

}  // namespace plait
