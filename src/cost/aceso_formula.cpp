#include "cost/aceso_formula.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"

namespace plait {
namespace {

constexpr double kMb = 0x1p20;
constexpr double kMbPerGbSecond = 1e3;  // GB/s are taken as MB a millisecond
constexpr Seconds kUnknownSize{100};

// What is kept of recomputed ops and what one run of them needs.
struct Recomputed {
  double saved = 0;
  double peak = 0;
};

}  // namespace

std::string aceso_family(const std::string& name) { return name.substr(0, name.find('_')); }

AcesoFormula::AcesoFormula(const AcesoTable& table, const std::vector<std::string>& ops,
                           int devices_per_node)
    : table_(table), devices_per_node_(devices_per_node) {
  const std::string family = aceso_family(table.name);
  reshards_ = family != "t5";
  main_share_ = family == "resnet" ? 1 : 3;
  optimizer_share_ = family == "resnet" ? 2 : 4;
  std::map<std::string, int> known;
  for (const std::string& op : ops) {
    const auto [it, is_new] = known.emplace(op, static_cast<int>(kinds_.size()));
    if (is_new) kinds_.push_back({op, aceso_rule(op)});
    units_.push_back(it->second);
  }
  for (const auto& [point, rows] : table.points) {
    auto& own = rows_[point];
    for (const Kind& kind : kinds_) {
      const auto row = rows.find(kind.name);
      const bool measured = row != rows.end() && !row->second.did_not_fit;
      own.push_back(measured ? &row->second : nullptr);
    }
  }
}

const AcesoOp* AcesoFormula::row(int op, const AcesoPoint& point) const {
  const auto rows = rows_.find(point);
  return rows == rows_.end() ? nullptr : rows->second[units_[op]];
}

Seconds AcesoFormula::send(Bytes size, bool across_nodes) const {
  if (size <= Bytes(0)) return Seconds(0);
  const std::vector<double>& rates =
      across_nodes && !table_.inter_node.empty() ? table_.inter_node : table_.intra_node;
  if (rates.empty()) return Seconds(0);
  const int count = static_cast<int>(rates.size());
  int index = static_cast<int>(std::trunc(std::log2(size.value / kMb)));
  if (index >= 1) --index;
  index = index < 0 ? std::max(0, count + index) : std::min(index, count - 1);
  return Seconds(size.value / kMb / rates[index] / kMbPerGbSecond);
}

Seconds AcesoFormula::collective(const char* name, int members, Bytes size) const {
  if (*name == '\0' || std::string_view(name) == "split") return Seconds(0);
  const auto found = table_.collectives.find({name, members});
  // Aceso's program ends here; a ring over the links inside a node stands for the missing file.
  if (found == table_.collectives.end()) return send(size, false) * (members - 1.0);
  for (const double less : {0.0, 1.0}) {
    const auto time = found->second.find(std::llrint(size.value / kMb - less));
    if (time != found->second.end()) return time->second;
  }
  return kUnknownSize;
}

std::pair<Seconds, Seconds> AcesoFormula::reshard(int op, const AcesoChoice& before,
                                                  const AcesoChoice& own, int micro_batch) const {
  if (!reshards_) return {};
  const AcesoReshard change =
      aceso_reshard(aceso_layout(name(op - 1), before.tensor, before.data, before.algorithm, false),
                    aceso_layout(name(op), own.tensor, own.data, own.algorithm, true));
  if (change.members <= 1) return {};
  const AcesoOp* row = this->row(op, {micro_batch / own.data, own.tensor, own.algorithm});
  if (row == nullptr) return {kUnknownSize, kUnknownSize};
  return {collective(change.forward, change.members, row->input),
          collective(change.backward, change.members, row->input)};
}

namespace {

Recomputed recomputed_part(const AcesoFormula& formula, const AcesoStage& stage,
                           std::span<const AcesoOp* const> rows) {
  Recomputed out;
  double run = 0;
  const int count = stage.ops.size();
  const auto close = [&] {
    out.peak = std::max(out.peak, run);
    run = 0;
  };
  for (int i = 0; i + 1 < count; ++i) {
    if (!stage.choices[i].recomputed || !stage.choices[i + 1].recomputed) {
      if (run > 0) close();
      continue;
    }
    const double share = formula.rule(stage.ops.begin + i).activation_share;
    const bool ends = formula.rule(stage.ops.begin + i + 1).starts_segment;
    const double kept = share * rows[i]->activations.value;
    if (share != 1 || !ends) out.saved += kept;
    run += kept;
    if (share == 1 && (ends || i + 2 == count)) close();
  }
  return out;
}

}  // namespace

void AcesoFormula::add_memory(const AcesoStage& stage, std::span<const AcesoOp* const> rows,
                              int behind, AcesoStageCost& cost) const {
  Bytes weights, forward, backward;
  Bytes activations = rows[0]->input;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    weights += rows[i]->weights;
    activations +=
        rows[i]->activations * rule(stage.ops.begin + static_cast<int>(i)).activation_share;
    if (i + 1 == rows.size()) break;
    forward = std::max(forward, rows[i]->forward_reserved);
    backward = std::max(backward, rows[i]->backward_reserved);
  }
  const Recomputed recomputed = recomputed_part(*this, stage, rows);
  cost.weights = weights * main_share_;
  cost.gradients = weights;
  cost.optimizer = weights * optimizer_share_;
  cost.activations = (activations - Bytes(recomputed.saved)) * static_cast<double>(behind);
  cost.peak = activations - Bytes(recomputed.saved) + Bytes(recomputed.peak);
  cost.reserved = std::max(forward + backward, weights);
}

std::optional<AcesoStageCost> AcesoFormula::stage(const AcesoStage& stage, int micro_batch,
                                                  int behind, const AcesoBorders& borders) const {
  PLAIT_CHECK(stage.ops.size() > 0 &&
              stage.choices.size() == static_cast<std::size_t>(stage.ops.size()));
  AcesoStageCost cost;
  std::vector<const AcesoOp*> rows;
  Seconds forward, backward;
  for (int i = 0; i < stage.ops.size(); ++i) {
    const AcesoChoice& choice = stage.choices[i];
    const AcesoOp* op =
        row(stage.ops.begin + i, {micro_batch / choice.data, choice.tensor, choice.algorithm});
    if (op == nullptr) return std::nullopt;
    rows.push_back(op);
    cost.forward += op->forward;
    cost.backward += op->backward;
    if (choice.recomputed) cost.recomputed += op->forward;
    if (i == 0) continue;
    const auto change = reshard(stage.ops.begin + i, stage.choices[i - 1], choice, micro_batch);
    forward += change.first;
    backward += change.second;
  }
  const AcesoChoice& last = stage.choices.back();
  const AcesoOp* sender =
      row(stage.ops.end - 1, {micro_batch / last.data, stage.choices[0].tensor, last.algorithm});
  if (sender == nullptr) return std::nullopt;
  cost.in = send(rows[0]->input, borders.in) + forward;
  cost.out = send(sender->output, borders.out) + backward;
  cost.reshard = forward + backward;
  add_memory(stage, rows, behind, cost);
  return cost;
}

std::optional<AcesoCost> AcesoFormula::cost(std::span<const AcesoStage> stages, int global_batch,
                                            int micro_batch) const {
  AcesoCost out;
  Seconds sum;
  int devices = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    AcesoBorders borders;
    borders.in = devices > 0 && devices % devices_per_node_ == 0;
    devices += stages[i].devices;
    borders.out = devices % devices_per_node_ == 0;
    const int behind = static_cast<int>(stages.size() - 1 - i);
    const std::optional<AcesoStageCost> one = stage(stages[i], micro_batch, behind, borders);
    if (!one) return std::nullopt;
    sum += one->time();
    out.memory = std::max(out.memory, one->memory());
    out.stages.push_back(*one);
  }
  const int micro_batches = global_batch / micro_batch;
  for (const AcesoStageCost& one : out.stages) {
    out.times.push_back(one.time() * (micro_batches - 1.0) + sum);
    out.step = std::max(out.step, out.times.back());
  }
  return out;
}

std::vector<AcesoStage> aceso_stages(const Plan& plan) {
  std::vector<AcesoStage> out;
  for (const Stage& stage : plan.stages) {
    AcesoStage own;
    own.devices = static_cast<int>(stage.devices.size());
    own.ops = {stage.spans.front().units.begin, stage.spans.back().units.end};
    for (const Span& span : stage.spans)
      own.choices.insert(own.choices.end(), span.units.size(),
                         {span.tensor, span.data, span.split, span.recompute != Recompute::none});
    out.push_back(std::move(own));
  }
  return out;
}

Plan plan_of(std::span<const AcesoStage> stages, int micro_batches) {
  Plan plan;
  plan.micro_batches = micro_batches;
  int device = 0;
  for (const AcesoStage& own : stages) {
    Stage stage;
    for (int i = 0; i < own.devices; ++i) stage.devices.push_back(DeviceId{device++});
    for (int i = 0; i < own.ops.size(); ++i) {
      const AcesoChoice& choice = own.choices[i];
      if (i == 0 || !(choice == own.choices[i - 1]))
        stage.spans.push_back({.units = {own.ops.begin + i, own.ops.begin + i},
                               .tensor = choice.tensor,
                               .data = choice.data,
                               .split = choice.algorithm,
                               .recompute = choice.recomputed ? Recompute::full : Recompute::none});
      ++stage.spans.back().units.end;
    }
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

}  // namespace plait
