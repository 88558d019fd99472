#include "io/framework/framework_json.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "io/format/json_writer.h"
#include "plan/names.h"
#include "plan/target.h"

namespace plait {
namespace {

constexpr double kMostOfTrait = 1e12;  // of any constant in the unit of its key

// A constant: key in files, units in one of SI (division by it is exact for whole numbers), place.
template <typename Of>
struct NumberField {
  std::string_view key;
  double per_unit;
  double& (*at)(Of&);
};
template <typename Of>
struct SwitchField {
  std::string_view key;
  bool& (*at)(Of&);
};

using T = FrameworkTraits;
constexpr double kMicroseconds = 1e6;
constexpr double kNanoseconds = 1e9;
constexpr double kMebibytes = 0x1p-20;
constexpr double kGibibytes = 0x1p-30;

constexpr NumberField<T> kTraitNumbers[] = {
    {"host_block_us", kMicroseconds, [](T& t) -> double& { return t.host_block.value; }},
    {"host_tensor", 1, [](T& t) -> double& { return t.host_tensor; }},
    {"host_split_ns", kNanoseconds, [](T& t) -> double& { return t.host_split.value; }},
    {"host_separate_softmax_us", kMicroseconds,
     [](T& t) -> double& { return t.host_separate_softmax.value; }},
    {"host_recompute", 1, [](T& t) -> double& { return t.host_recompute; }},
    {"host_checkpoint_us", kMicroseconds, [](T& t) -> double& { return t.host_checkpoint.value; }},
    {"host_kernel_us", kMicroseconds, [](T& t) -> double& { return t.host_kernel.value; }},
    {"host_experts_us", kMicroseconds, [](T& t) -> double& { return t.host_experts.value; }},
    {"host_head_us", kMicroseconds, [](T& t) -> double& { return t.host_head.value; }},
    {"host_embedding_us", kMicroseconds, [](T& t) -> double& { return t.host_embedding.value; }},
    {"host_gather_us", kMicroseconds, [](T& t) -> double& { return t.host_gather.value; }},
    {"host_update_us", kMicroseconds, [](T& t) -> double& { return t.host_update.value; }},
    {"host_overlap_exponent", 1, [](T& t) -> double& { return t.host_overlap_exponent; }},
    {"traffic", 1, [](T& t) -> double& { return t.traffic; }},
    {"expert_traffic", 1, [](T& t) -> double& { return t.expert_traffic; }},
    {"loss_bytes", 1, [](T& t) -> double& { return t.loss_bytes; }},
    {"cast_bytes", 1, [](T& t) -> double& { return t.cast_bytes; }},
    {"clip_bytes", 1, [](T& t) -> double& { return t.clip_bytes; }},
    {"softmax_forward", 1, [](T& t) -> double& { return t.softmax_forward; }},
    {"softmax_backward", 1, [](T& t) -> double& { return t.softmax_backward; }},
    {"tensor_exposed", 1, [](T& t) -> double& { return t.tensor_exposed; }},
    {"tensor_backward", 1, [](T& t) -> double& { return t.tensor_backward; }},
    {"tensor_skew_us", kMicroseconds, [](T& t) -> double& { return t.tensor_skew.value; }},
    {"tensor_skew_power", 1, [](T& t) -> double& { return t.tensor_skew_power; }},
    {"data_exposed", 1, [](T& t) -> double& { return t.data_exposed; }},
    {"expert_exposed", 1, [](T& t) -> double& { return t.expert_exposed; }},
    {"context_exposed", 1, [](T& t) -> double& { return t.context_exposed; }},
    {"gather_exposed", 1, [](T& t) -> double& { return t.gather_exposed; }},
    {"sync_pieces", 1, [](T& t) -> double& { return t.sync_pieces; }},
    {"send_limit_GiBps", kGibibytes, [](T& t) -> double& { return t.send_limit.value; }},
    {"send_wait_us", kMicroseconds, [](T& t) -> double& { return t.send_wait.value; }},
    {"logit_bytes", 1, [](T& t) -> double& { return t.logit_bytes; }},
    {"workspace_MiB", kMebibytes, [](T& t) -> double& { return t.workspace.value; }},
};

constexpr SwitchField<T> kTraitSwitches[] = {
    {"fused_softmax", [](T& t) -> bool& { return t.fused_softmax; }},
    {"pads_vocabulary", [](T& t) -> bool& { return t.pads_vocabulary; }},
    {"selective_recomputes_every_other_op",
     [](T& t) -> bool& { return t.selective_recomputes_every_other_op; }},
    {"send_blocks", [](T& t) -> bool& { return t.send_blocks; }},
    {"scatters_sends", [](T& t) -> bool& { return t.scatters_sends; }},
    {"sends_mask", [](T& t) -> bool& { return t.sends_mask; }},
    {"keeps_quantised", [](T& t) -> bool& { return t.keeps_quantised; }},
    {"applies_router_weight_in_activation",
     [](T& t) -> bool& { return t.applies_router_weight_in_activation; }},
    {"keeps_gradients", [](T& t) -> bool& { return t.keeps_gradients; }},
    {"keeps_between_kernels", [](T& t) -> bool& { return t.keeps_between_kernels; }},
    {"buckets_gradients", [](T& t) -> bool& { return t.buckets_gradients; }},
    {"packs_gradients", [](T& t) -> bool& { return t.packs_gradients; }},
};

constexpr NumberField<MixedState> kMixedNumbers[] = {
    {"gradient_bytes", 1, [](MixedState& m) -> double& { return m.gradient; }},
    {"sent_gradient_bytes", 1, [](MixedState& m) -> double& { return m.sent_gradient; }},
    {"sharded_gradient_bytes", 1, [](MixedState& m) -> double& { return m.sharded_gradient; }},
    {"step_gradient_bytes", 1, [](MixedState& m) -> double& { return m.step_gradient; }},
    {"gathered_bytes", 1, [](MixedState& m) -> double& { return m.gathered; }},
    {"master_bytes", 1, [](MixedState& m) -> double& { return m.master; }},
    {"moment_bytes", 1, [](MixedState& m) -> double& { return m.moment; }},
};

const std::vector<std::string_view> kKernelNames{"fused", "eager", "libtorch"};
const std::vector<std::string_view> kFp32Names{"never", "sharded", "always"};

double read_number(const JsonValue& value, double per_unit) {
  const double number = value.at_least(0);
  if (number > kMostOfTrait)
    throw InputError(value.where(), fmt::format("must be at most {}, is {}", kMostOfTrait, number));
  return number / per_unit;
}

// A number x with x / per_unit == value: the product that undoes it may be one rounding off.
double in_units(double value, double per_unit) {
  const double guess = value * per_unit;
  for (const double x : {guess, std::nextafter(guess, 0.0), std::nextafter(guess, HUGE_VAL)})
    if (x / per_unit == value) return x;
  return guess;
}

// The field of that key among `fields`, or nullptr.
template <typename Fields>
auto find_field(const Fields& fields, std::string_view key) {
  for (const auto& field : fields)
    if (field.key == key) return &field;
  return static_cast<decltype(&fields[0])>(nullptr);
}

[[noreturn]] void refuse_key(const JsonValue& object, std::string_view key,
                             const std::vector<std::string_view>& known) {
  throw InputError(object.where(), fmt::format("unknown key '{}'{}", key, suggestion(key, known)));
}

std::vector<std::string_view> trait_keys() {
  std::vector<std::string_view> keys{"kernels", "flash_kernel"};
  for (const auto& field : kTraitNumbers) keys.push_back(field.key);
  for (const auto& field : kTraitSwitches) keys.push_back(field.key);
  return keys;
}

std::vector<std::string_view> mixed_keys() {
  std::vector<std::string_view> keys{"fp32_weights"};
  for (const auto& field : kMixedNumbers) keys.push_back(field.key);
  return keys;
}

MixedState read_mixed(const JsonValue& object, const MixedState& fallback) {
  MixedState out = fallback;
  for (const auto& [key, value] : object.members()) {
    if (const auto* number = find_field(kMixedNumbers, key))
      number->at(out) = read_number(value, number->per_unit);
    else if (key == "fp32_weights")
      out.fp32_weights = static_cast<Fp32Weights>(value.choice(kFp32Names));
    else
      refuse_key(object, key, mixed_keys());
  }
  return out;
}

std::vector<FrameworkFit> read_fits(const JsonValue& list) {
  std::vector<std::string_view> known = trait_keys();
  for (const std::string_view key : mixed_keys()) known.push_back(key);
  std::vector<FrameworkFit> fits;
  for (const JsonValue& object : list.items()) {
    object.allow_only({"of", "on", "date"});
    FrameworkFit fit{.of = {}, .on = object.at("on").text(), .date = object.text_or("date", "")};
    for (const JsonValue& key : object.at("of").items())
      fit.of.emplace_back(known[key.choice(known)]);
    fits.push_back(std::move(fit));
  }
  return fits;
}

}  // namespace

FrameworkTraits read_traits(const JsonValue& object, const FrameworkTraits& fallback) {
  FrameworkTraits out = fallback;
  for (const auto& [key, value] : object.members()) {
    if (const auto* number = find_field(kTraitNumbers, key))
      number->at(out) = read_number(value, number->per_unit);
    else if (const auto* on_or_off = find_field(kTraitSwitches, key))
      on_or_off->at(out) = value.boolean();
    else if (key == "kernels")
      out.kernels = static_cast<KernelStyle>(value.choice(kKernelNames));
    else if (key == "flash_kernel")
      out.flash_kernel = static_cast<FlashKernel>(value.choice(flash_kernel_names()));
    else
      refuse_key(object, key, trait_keys());
  }
  if (out.host_overlap_exponent < 1)
    throw InputError(object.where(), "host_overlap_exponent must be at least 1");
  return out;
}

FrameworkEntry read_framework_entry(const JsonValue& object, const KnownFramework& known) {
  object.allow_only({"name", "like", "aliases", "what", "traits", "mixed_precision", "autocast",
                     "fully_sharded", "target", "fits",
                     // Of plan files that were written before there were targets: not needed.
                     "without", "schedules"});
  FrameworkEntry out;
  if (const auto like = object.find("like")) {
    out.framework = known(*like);
    out.like = like->text();
  }
  Framework& framework = out.framework;
  framework.name = object.at("name").text();
  if (framework.name.empty()) throw InputError(object.at("name").where(), "must not be empty");
  out.what = object.text_or("what", "");
  if (const auto aliases = object.find("aliases"))
    for (const JsonValue& alias : aliases->items()) out.aliases.push_back(alias.text());
  if (const auto traits = object.find("traits"))
    framework.traits = read_traits(*traits, framework.traits);
  if (const auto mixed = object.find("mixed_precision"))
    framework.mixed = read_mixed(*mixed, framework.mixed);
  framework.autocast = object.boolean_or("autocast", framework.autocast);
  framework.fully_sharded = object.boolean_or("fully_sharded", framework.fully_sharded);
  if (const auto target = object.find("target"))
    framework.target = targets()[target->choice(target_names())].name;
  if (const auto fits = object.find("fits")) out.fits = read_fits(*fits);
  return out;
}

std::vector<TraitValue> trait_values(const FrameworkTraits& traits) {
  FrameworkTraits copy = traits;
  std::vector<TraitValue> values;
  for (const auto& field : kTraitNumbers)
    values.push_back({field.key, in_units(field.at(copy), field.per_unit)});
  return values;
}

std::string framework_json(const Framework& framework) {
  Framework copy = framework;
  JsonObject traits;
  for (const TraitValue& trait : trait_values(copy.traits)) traits.number(trait.key, trait.value);
  for (const auto& field : kTraitSwitches) traits.boolean(field.key, field.at(copy.traits));
  traits.text("flash_kernel", name_of(copy.traits.flash_kernel));
  traits.text("kernels", kKernelNames[static_cast<int>(copy.traits.kernels)]);
  JsonObject mixed;
  for (const auto& field : kMixedNumbers) mixed.number(field.key, field.at(copy.mixed));
  mixed.text("fp32_weights", kFp32Names[static_cast<int>(copy.mixed.fp32_weights)]);
  return JsonObject()
      .text("name", copy.name)
      .json("traits", traits.str())
      .json("mixed_precision", mixed.str())
      .boolean("autocast", copy.autocast)
      .boolean("fully_sharded", copy.fully_sharded)
      .text("target", copy.target)
      .str();
}

}  // namespace plait
