#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "model/model.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// The words that files, flags and tables use for the enumerations, in the order of their
// enumerators: position i of schedule_names() is the name of static_cast<Schedule>(i).
const std::vector<std::string_view>& schedule_names();    // gpipe 1f1b interleaved zb-h1 zb-2p zb-v
const std::vector<std::string_view>& recompute_names();   // none selective full
const std::vector<std::string_view>& zero_stage_names();  // 0 1 2 3
const std::vector<std::string_view>& precision_names();   // fp32 .. pure-bf16 fp8 fp8-row fp4
const std::vector<std::string_view>& optimizer_names();   // adam sgd momentum
const std::vector<std::string_view>& attention_names();   // flash plain
const std::vector<std::string_view>& flash_kernel_names();   // first second native
const std::vector<std::string_view>& dtype_names();          // fp32 tf32 fp16 bf16 fp8
const std::vector<std::string_view>& op_kind_names();        // as the enumerators
const std::vector<std::string_view>& function_names();       // as the enumerators
const std::vector<std::string_view>& split_names();          // as the enumerators
const std::vector<std::string_view>& tensor_layout_names();  // as the enumerators

std::string_view name_of(Schedule value);
std::string_view name_of(Recompute value);
std::string_view name_of(ZeroStage value);
std::string_view name_of(Precision value);
std::string_view name_of(Optimizer value);
std::string_view name_of(AttentionKernel value);
std::string_view name_of(FlashKernel value);
std::string_view name_of(DType value);
std::string_view name_of(OpKind value);
std::string_view name_of(Function value);
std::string_view name_of(Split value);
std::string_view name_of(TensorLayout value);

// The value of that name, or nothing. Case does not matter and "_" stands for "-" ("ZB_H1").
std::optional<Schedule> schedule_named(std::string_view name);
std::optional<Recompute> recompute_named(std::string_view name);
std::optional<ZeroStage> zero_stage_named(std::string_view name);
std::optional<Precision> precision_named(std::string_view name);
std::optional<Optimizer> optimizer_named(std::string_view name);
std::optional<AttentionKernel> attention_named(std::string_view name);
std::optional<FlashKernel> flash_kernel_named(std::string_view name);
std::optional<DType> dtype_named(std::string_view name);
std::optional<OpKind> op_kind_named(std::string_view name);
std::optional<Function> function_named(std::string_view name);
std::optional<Split> split_named(std::string_view name);
std::optional<TensorLayout> tensor_layout_named(std::string_view name);

}  // namespace plait
