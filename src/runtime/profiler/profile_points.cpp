#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/error.h"
#include "cost/op/op_points.h"
#include "io/format/json_reader.h"
#include "io/profile/profile_json.h"
#include "model/fingerprint.h"
#include "plan/names.h"
#include "runtime/lower/exec_op.h"
#include "runtime/profiler/profile.h"

namespace plait::runtime {
namespace {

constexpr double kFarthest = 4;  // powers of two; the distance of the first point of a group
constexpr std::size_t kMostOps = 10'000;
constexpr int kMostWindow = 1000;

bool is_whole(double size) { return size >= 0 && size == std::floor(size); }

double power(double size) { return size > 0 ? std::log2(size) : 0; }

std::string text_of(const OpKey& key) {
  return fmt::format(
      "op {} {} {} rows {} inner {} columns {} count {} kv {} causal {} window {}/{}",
      name_of(key.kind), name_of(key.function), name_of(key.dtype), key.rows, key.inner,
      key.columns, key.count, key.kv_count, key.causal, key.window, key.stride);
}

double flops_of(const OpKey& key) {
  switch (key.kind) {
    case OpKind::matmul:
    case OpKind::convolution:
      return 2 * key.rows * key.inner * key.columns * key.count;
    case OpKind::attention:
      return 4 * key.rows * key.inner * key.columns * key.count;
    default:
      // An element that is moved costs as much as some hundred flops.
      return 500 * key.rows * std::max(1.0, key.columns);
  }
}

ProfilePoint point_of(const OpKey& key) {
  ProfilePoint point;
  point.op = key;
  point.text = text_of(key);
  point.group = fmt::format("{} {} {} {} {}", name_of(key.kind), name_of(key.function),
                            name_of(key.dtype), key.causal, key.window);
  point.at = {power(key.rows), power(key.inner), power(key.columns), power(key.count)};
  point.weight = flops_of(key);
  return point;
}

// Why one device of the group cannot compute its part of the op; "" when it can.
bool divides(const OpKey& key) {
  return is_whole(key.rows) && is_whole(key.inner) && is_whole(key.columns) &&
         is_whole(key.count) && is_whole(key.kv_count) && key.rows >= 1 && key.count >= 1 &&
         (key.window < 2 || is_whole(key.inner / (key.window * key.window)));
}

// The first unit of each kind.
std::vector<int> distinct_units(const Model& model) {
  std::vector<int> units;
  std::set<int> seen;
  for (int u = 0; u < model.unit_count(); ++u)
    if (seen.insert(model.units[u]).second) units.push_back(u);
  return units;
}

bool unit_divides(const Job& job, const Model& model, const LayerKind& kind, int tensor) {
  for (const Op& op : kind.ops)
    if (op.forward > Flops(0) && op.split != Split::vocabulary && op.split != Split::experts &&
        !divides(op_key(job, model, op, {.samples = 1, .tensor = tensor})))
      return false;
  return true;
}

// By unit: whether it runs alone. Where ops are units, those between experts do not.
std::vector<bool> units_that_run_alone(const Model& model) {
  std::vector<bool> alone(model.units.size(), true);
  const Lowered lowered = lower(model);
  if (!lowered.fault.empty()) return alone;  // which is said when the first is measured
  const ExecProgram& program = lowered.program;
  for (int u = 0; u < model.unit_count(); ++u) {
    const int begin = program.begin[u];
    const int end = program.begin[u + 1];
    alone[u] =
        (begin == 0 || program.ops[begin - 1].may_cut_after) && program.ops[end - 1].may_cut_after;
  }
  return alone;
}

ProfilePoint point_of(const PointRequest& request, const Model& model, int unit, int tensor,
                      int micro_batch) {
  const LayerKind& kind = model.unit(unit);
  ProfilePoint point;
  point.unit = UnitPlace{&model, unit, tensor, micro_batch};
  point.text =
      fmt::format("unit {} seq {} tp {} mbs {} {} {} {}", fingerprint(model, kind),
                  model.sequence_length, tensor, micro_batch, name_of(request.job.precision),
                  name_of(request.job.optimizer), name_of(request.job.attention));
  point.group = "unit " + fingerprint(model, kind);
  point.at = {power(tensor), power(micro_batch), power(model.sequence_length)};
  const auto times = std::ranges::count(model.units, model.units[unit]);
  point.weight = static_cast<double>(times) * std::max(kind.forward().value, 500 * kind.output) *
                 micro_batch / tensor;
  return point;
}

// An entry of a list of ops; a size that is a list stands for each of its values.
std::vector<OpKey> keys_of(const JsonValue& item) {
  item.allow_only({"op", "function", "dtype", "rows", "inner", "columns", "count", "kv_count",
                   "causal", "window", "stride"});
  OpKey base;
  base.kind = static_cast<OpKind>(item.at("op").choice(op_kind_names()));
  if (const auto function = item.find("function"))
    base.function = static_cast<Function>(function->choice(function_names()));
  base.dtype = static_cast<DType>(item.at("dtype").choice(dtype_names()));
  base.causal = item.boolean_or("causal", false);
  base.window = item.integer_or("window", 0, kMostWindow, 0);
  base.stride = item.integer_or("stride", 0, kMostWindow, 0);
  std::vector<OpKey> keys{base};
  const auto spread = [&](const char* name, double OpKey::*size) {
    const auto value = item.find(name);
    if (!value) return;
    const std::vector<JsonValue> choices =
        value->is_array() ? value->items() : std::vector<JsonValue>{*value};
    std::vector<OpKey> more;
    for (const OpKey& key : keys)
      for (const JsonValue& choice : choices) {
        more.push_back(key);
        more.back().*size = choice.at_least(0);
      }
    if (more.size() > kMostOps) throw InputError(item.where(), "stands for too many ops");
    keys = std::move(more);
  };
  spread("rows", &OpKey::rows);
  spread("inner", &OpKey::inner);
  spread("columns", &OpKey::columns);
  spread("count", &OpKey::count);
  spread("kv_count", &OpKey::kv_count);
  return keys;
}

void check_key(const JsonValue& item, const OpKey& key) {
  if (key.window > 1 && !is_whole(key.inner / (key.window * key.window)))
    throw InputError(item.where(), "inner must be the channels times the square of window");
  if (!divides(key))
    throw InputError(item.where(), "sizes must be whole numbers, and rows at least 1");
  const bool product = key.kind == OpKind::matmul || key.kind == OpKind::convolution ||
                       key.kind == OpKind::attention;
  if (product && (key.inner < 1 || key.columns < 1))
    throw InputError(item.where(), "needs inner and columns");
  const bool wide = key.kind == OpKind::norm || key.kind == OpKind::embedding ||
                    key.kind == OpKind::loss || key.kind == OpKind::reduction;
  if (wide && key.columns < 1) throw InputError(item.where(), "needs columns");
  if (key.kind == OpKind::attention && key.kv_count > 0 && !is_whole(key.count / key.kv_count))
    throw InputError(item.where(), "kv_count must divide count");
  const double side = std::sqrt(key.rows);
  if (key.kind == OpKind::convolution && (!is_whole(side) || key.window < 1 || key.stride < 1))
    throw InputError(item.where(), "needs window and stride, and rows that are a square");
}

}  // namespace

std::vector<ProfilePoint> points_of(const PointRequest& request, std::vector<std::string>& notes) {
  std::vector<ProfilePoint> points;
  std::set<std::string> seen;
  const auto add = [&](ProfilePoint point) {
    if (seen.insert(point.text).second) points.push_back(std::move(point));
  };
  for (const Model& model : request.models) {
    const std::vector<bool> alone = units_that_run_alone(model);
    for (const int u : distinct_units(model))
      for (const int tensor : request.tensors) {
        const LayerKind& kind = model.unit(u);
        if (!unit_divides(request.job, model, kind, tensor)) {
          notes.push_back(fmt::format("{} cannot be cut over {} devices", kind.name, tensor));
          continue;
        }
        for (const int micro_batch : request.micro_batches) {
          if (request.units && alone[u]) add(point_of(request, model, u, tensor, micro_batch));
          if (!request.ops) continue;
          for (const Op& op : kind.ops) {
            OpKey key = op_key(request.job, model, op,
                               {.samples = static_cast<double>(micro_batch), .tensor = tensor});
            key.rows = std::floor(key.rows);  // of experts: a token's share
            key.columns = std::floor(key.columns);
            if (divides(key)) add(point_of(key));
          }
        }
      }
    if (request.units && std::ranges::find(alone, false) != alone.end())
      notes.emplace_back(
          "ops between the experts of a mixture run together only: they are not measured as units");
  }
  return points;
}

std::vector<ProfilePoint> points_of_list(const std::string& path) {
  const JsonValue root = read_json_file(path);
  if (!root.is_object() || !root.find("plait_ops"))
    throw InputError(path, R"(is not a list of ops: 'plait_ops': 1 is missing)");
  root.allow_only({"plait_ops", "ops"});
  root.at("plait_ops").integer(1, 1);
  const std::vector<JsonValue> items = root.at("ops").items();
  if (items.empty() || items.size() > kMostOps)
    throw InputError(path, fmt::format("must have from 1 to {} ops", kMostOps));
  std::vector<ProfilePoint> points;
  std::set<std::string> seen;
  for (const JsonValue& item : items)
    for (const OpKey& key : keys_of(item)) {
      check_key(item, key);
      ProfilePoint point = point_of(key);
      if (seen.insert(point.text).second) points.push_back(std::move(point));
      if (points.size() > kMostOps)
        throw InputError(path, fmt::format("has more than {} ops", kMostOps));
    }
  return points;
}

void order_by_information(std::vector<ProfilePoint>& points) {
  const std::size_t count = points.size();
  std::vector<double> distance(count, kFarthest);
  std::vector<bool> taken(count, false);
  std::vector<ProfilePoint> ordered;
  ordered.reserve(count);
  for (std::size_t n = 0; n < count; ++n) {
    std::size_t best = count;
    double most = -1;
    for (std::size_t i = 0; i < count; ++i) {
      if (taken[i]) continue;
      const double gain = std::sqrt(points[i].weight) * distance[i];
      if (gain > most) {
        most = gain;
        best = i;
      }
    }
    taken[best] = true;
    for (std::size_t i = 0; i < count; ++i) {
      if (taken[i] || points[i].group != points[best].group) continue;
      double squares = 0;
      for (std::size_t d = 0; d < points[i].at.size(); ++d)
        squares += std::pow(points[i].at[d] - points[best].at[d], 2);
      distance[i] = std::min(distance[i], std::sqrt(squares));
    }
    ordered.push_back(points[best]);
  }
  points = std::move(ordered);
}

}  // namespace plait::runtime
