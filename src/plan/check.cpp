#include "plan/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "model/op_cuts.h"
#include "plan/cover.h"
#include "plan/names.h"

namespace plait {
namespace {

std::string stage_place(int stage, const char* field) {
  return fmt::format("stages[{}].{}", stage, field);
}

int size_of(const auto& list) { return static_cast<int>(list.size()); }

constexpr int kFewUnits = 32;  // whose kinds are looked for one by one

bool divides(double part, double whole) { return std::fmod(whole, part) == 0; }

class Checker {
 public:
  Checker(const Problem& problem, const Plan& plan) : problem_(problem), plan_(plan) {}

  std::vector<Violation> run() {
    if (plan_.stages.empty()) report("stages", "must not be empty");
    check_step();
    check_context();
    check_experts();
    for (int s = 0; s < plan_.stage_count(); ++s) {
      check_units(s);
      check_chunks(s);
      check_devices(s);
      for (int i = 0; i < size_of(plan_.stages[s].spans); ++i) check_span(s, i);
      check_shares(s);
    }
    check_pipeline();
    report_cover(problem_, plan_, chunks_sound_, found_);
    return std::move(found_);
  }

 private:
  void report(std::string where, std::string what) {
    found_.push_back({.where = std::move(where), .what = std::move(what)});
  }

  // Rules of the batch and of the numbers that hold for the whole plan.
  void check_step() {
    const int batch = problem_.job.global_batch;
    if (plan_.micro_batches < 1 || plan_.micro_batches > batch)
      report("micro_batches", fmt::format("must be from 1 to the global batch of {}, is {}", batch,
                                          plan_.micro_batches));
    else if (batch % plan_.micro_batches != 0)
      report("micro_batches",
             fmt::format("must divide the global batch of {}, is {}", batch, plan_.micro_batches));
    else
      micro_batch_ = batch / plan_.micro_batches;
    if (!(plan_.offload >= 0 && plan_.offload <= 1))
      report("offload", fmt::format("must be from 0 to 1, is {}", plan_.offload));
  }

  void check_context() {
    const int sequence = problem_.model.sequence_length;
    if (plan_.context < 1) {
      report("context", fmt::format("must be at least 1, is {}", plan_.context));
    } else if (sequence % plan_.context != 0) {
      report("context",
             fmt::format("must divide the sequence length of {}, is {}", sequence, plan_.context));
    } else {
      local_sequence_ = sequence / plan_.context;
    }
  }

  void check_experts() {
    std::set<double> expert_counts;
    for (const int kind : kinds_of({0, problem_.model.unit_count()}))
      for (const Op& op : problem_.model.kinds[kind].ops)
        if (op.split == Split::experts) expert_counts.insert(op.count);
    if (plan_.expert < 1) {
      report("expert", fmt::format("must be at least 1, is {}", plan_.expert));
    } else if (plan_.expert > 1 && expert_counts.empty()) {
      report("expert", fmt::format("must be 1 for a model without experts, is {}", plan_.expert));
    } else {
      for (const double count : expert_counts)
        if (!divides(plan_.expert, count))
          report("expert", fmt::format("must divide the {} experts of the model, is {}", count,
                                       plan_.expert));
    }
  }

  // Ranges inside the model, ascending, and touching within a chunk.
  void check_units(int s) {
    const Stage& stage = plan_.stages[s];
    if (stage.spans.empty()) report(stage_place(s, "spans"), "must not be empty");
    for (int i = 0; i < size_of(stage.spans); ++i) {
      const UnitRange units = stage.spans[i].units;
      const auto where = [&] { return span_place(s, i, "units"); };
      if (units.begin >= units.end) {
        report(where(), fmt::format("must not be empty, is {} to {}", units.begin, units.end));
      } else if (units.begin < 0 || units.end > problem_.model.unit_count()) {
        report(where(), fmt::format("must be within the {} units of the model, is {} to {}",
                                    problem_.model.unit_count(), units.begin, units.end));
      } else if (i > 0) {
        const Span& before = stage.spans[i - 1];
        if (units.begin < before.units.end)
          report(where(), fmt::format("must begin at or after unit {}, where the span before ends",
                                      before.units.end));
        else if (units.begin > before.units.end && stage.spans[i].chunk == before.chunk)
          report(where(), fmt::format("must begin at unit {}, where the span before it in the same "
                                      "chunk ends",
                                      before.units.end));
      }
    }
  }

  // Numbering within the stage, and how many the schedule wants.
  void check_chunks(int s) {
    const Stage& stage = plan_.stages[s];
    if (stage.spans.empty()) return;
    int before = -1;
    for (int i = 0; i < size_of(stage.spans); ++i) {
      const int chunk = stage.spans[i].chunk;
      const bool follows = chunk == before + 1 || (i > 0 && chunk == before);
      if (!follows) {
        report(span_place(s, i, "chunk"),
               i == 0 ? fmt::format("must be 0 in the first span, is {}", chunk)
                      : fmt::format("must be {} or {}, is {}", before, before + 1, chunk));
        chunks_sound_ = false;
        return;
      }
      before = chunk;
    }
    const int chunks = chunk_count(stage);
    const auto wants = [&](bool right, const std::string& number) {
      if (right) return;
      chunks_sound_ = false;
      report(stage_place(s, "spans"), fmt::format("must be {} for schedule {}, are {}", number,
                                                  name_of(plan_.schedule), chunks));
    };
    if (plan_.schedule == Schedule::zb_v) {
      wants(chunks == 2, "2 chunks");
    } else if (plan_.schedule == Schedule::interleaved) {
      const int first = chunk_count(plan_.stages[0]);
      wants(chunks >= 2, "at least 2 chunks");
      if (chunks >= 2 && first >= 2)
        wants(chunks == first, fmt::format("{} chunks as in stage 0", first));
    } else {
      wants(chunks == 1, "1 chunk");
    }
  }

  void check_devices(int s) {
    const Stage& stage = plan_.stages[s];
    if (stage.devices.empty()) report(stage_place(s, "devices"), "must not be empty");
    user_of_.resize(problem_.cluster.devices.size(), -1);
    for (const DeviceId device : stage.devices) {
      const int id = index(device);
      if (!known(device)) {
        report(stage_place(s, "devices"),
               fmt::format("device {} is not one of the {} of the cluster", id,
                           problem_.cluster.device_count()));
      } else if (user_of_[id] >= 0) {
        report(stage_place(s, "devices"),
               fmt::format("device {} is already used by stage {}", id, user_of_[id]));
      } else {
        user_of_[id] = s;
      }
    }
  }

  bool known(DeviceId device) const {
    return index(device) >= 0 && index(device) < problem_.cluster.device_count();
  }

  void check_span(int s, int i) {
    const Span& span = plan_.stages[s].spans[i];
    check_split(s, i);
    if (span.tensor < 1)
      report(span_place(s, i, "tensor"), fmt::format("must be at least 1, is {}", span.tensor));
    if (span.data < 1)
      report(span_place(s, i, "data"), fmt::format("must be at least 1, is {}", span.data));
    if (span.tensor < 1 || span.data < 1 || plan_.context < 1) return;

    // In doubles: three ints may overflow 64 bits, and near the number of devices this is exact.
    const double wanted = 1.0 * span.tensor * span.data * plan_.context;
    const int devices = size_of(plan_.stages[s].devices);
    if (wanted != devices)
      report(span_place(s, i, "tensor"),
             fmt::format("tensor {} x data {} x context {} must be the {} devices of the stage",
                         span.tensor, span.data, plan_.context, devices));
    else
      check_tensor_groups(s, i);
    check_tensor(s, i);
    if (plan_.expert > 1 && !divides(plan_.expert, 1.0 * span.data * plan_.context))
      report(span_place(s, i, "data"),
             fmt::format("data {} x context {} must be a multiple of expert {}", span.data,
                         plan_.context, plan_.expert));
    if (plan_.stages[s].shares.empty() && micro_batch_ > 0 && micro_batch_ % span.data != 0)
      report(
          span_place(s, i, "data"),
          fmt::format("must divide the micro-batch of {} samples, is {}", micro_batch_, span.data));
  }

  // Ascending; units that there are not have none.
  std::vector<int> kinds_of(const UnitRange& units) const {
    const Model& model = problem_.model;
    const int begin = std::max(units.begin, 0);
    const int end = std::min(units.end, model.unit_count());
    std::vector<int> kinds;
    if (end - begin <= kFewUnits) {
      for (int u = begin; u < end; ++u)
        if (std::ranges::find(kinds, model.units[u]) == kinds.end())
          kinds.push_back(model.units[u]);
      std::ranges::sort(kinds);
      return kinds;
    }
    std::vector<bool> met(model.kinds.size());
    for (int u = begin; u < end; ++u) met[model.units[u]] = true;
    for (std::size_t kind = 0; kind < met.size(); ++kind)
      if (met[kind]) kinds.push_back(static_cast<int>(kind));
    return kinds;
  }

  void check_split(int s, int i) {
    const Span& span = plan_.stages[s].spans[i];
    if (span.split == 0) return;
    const std::string where = span_place(s, i, "split");
    if (span.split < 0) report(where, fmt::format("must be at least 0, is {}", span.split));
    for (const int kind : kinds_of(span.units)) {
      const LayerKind& unit = problem_.model.kinds[kind];
      const int ways = ways_to_cut(unit);
      if (span.split >= ways)
        return report(where, fmt::format("must be below {}, the number of ways to cut {}, is {}",
                                         ways, unit.name, span.split));
    }
  }

  // Whether the tensor degree cuts each op into equal parts. One complaint a span is enough.
  void check_tensor(int s, int i) {
    const Span& span = plan_.stages[s].spans[i];
    const auto where = [&] { return span_place(s, i, "tensor"); };
    const auto cut = [&](const Op& op) -> std::pair<double, const char*> {
      if (op.split == Split::heads) return {op.count, "heads"};
      if (op.split == Split::column) return {op.columns * op.count, "output features"};
      if (op.split == Split::row) return {op.inner * op.count, "input features"};
      return {0, ""};
    };
    for (const int kind : kinds_of(span.units)) {
      for (const Op& op : problem_.model.kinds[kind].ops) {
        const auto [side, name] = span.split == 0 ? cut(op) : cut(with_cut(op, span.split));
        if (divides(span.tensor, side)) continue;
        return report(where(), fmt::format("must divide the {} {} of {}.{}, is {}", side, name,
                                           problem_.model.kinds[kind].name, op.name, span.tensor));
      }
    }
    if (plan_.sequence_parallel && local_sequence_ > 0 && local_sequence_ % span.tensor != 0)
      report(where(), fmt::format("must divide the {} tokens of a sequence on each device for "
                                  "sequence_parallel, is {}",
                                  local_sequence_, span.tensor));
  }

  void check_tensor_groups(int s, int i) {
    const std::vector<DeviceId>& devices = plan_.stages[s].devices;
    const int tensor = plan_.stages[s].spans[i].tensor;
    for (int d = 0; d < size_of(devices); ++d) {
      const DeviceId first = devices[d - d % tensor];
      const Cluster& cluster = problem_.cluster;
      if (!known(first) || !known(devices[d])) continue;
      if (cluster.device(first).type == cluster.device(devices[d]).type) continue;
      return report(span_place(s, i, "tensor"),
                    fmt::format("a tensor group must have one device type: device {} is {}, "
                                "device {} is {}",
                                index(first), cluster.type_of(first).name, index(devices[d]),
                                cluster.type_of(devices[d]).name));
    }
  }

  void check_shares(int s) {
    const Stage& stage = plan_.stages[s];
    if (stage.shares.empty() || stage.spans.empty()) return;
    const std::string where = stage_place(s, "shares");
    const int data = stage.spans[0].data;
    std::int64_t sum = 0;
    for (const int share : stage.shares) sum += share;
    const auto differs = [&](const Span& span) { return span.data != data; };
    if (std::ranges::any_of(stage.spans, differs))
      report(where, "only a stage whose spans all have the same data may have shares");
    else if (size_of(stage.shares) != data)
      report(where, fmt::format("must be one for each of the {} replicas, are {}", data,
                                stage.shares.size()));
    for (int r = 0; r < size_of(stage.shares); ++r)
      if (stage.shares[r] < 1)
        report(fmt::format("{}[{}]", where, r),
               fmt::format("must be at least 1, is {}", stage.shares[r]));
    if (micro_batch_ > 0 && sum != micro_batch_)
      report(where, fmt::format("must add up to the micro-batch of {} samples, are {}",
                                micro_batch_, sum));
  }

  // What the interleaved schedule asks of the pipeline as a whole.
  void check_pipeline() {
    if (plan_.schedule != Schedule::interleaved || plan_.stages.empty()) return;
    const int stages = plan_.stage_count();
    if (stages < 2)
      report("stages", fmt::format("must be at least 2 for schedule interleaved, are {}", stages));
    if (plan_.micro_batches >= 1 && plan_.micro_batches % stages != 0)
      report("micro_batches",
             fmt::format("must be a multiple of the {} stages for schedule interleaved, is {}",
                         stages, plan_.micro_batches));
  }

  const Problem& problem_;
  const Plan& plan_;
  std::vector<Violation> found_;
  int micro_batch_ = 0;     // samples; 0 while the plan's numbers do not define it
  int local_sequence_ = 0;  // tokens of a sequence on one device; 0 likewise
  bool chunks_sound_ = true;
  std::vector<int> user_of_;  // stage that uses a device, -1 = none
};

}  // namespace

std::vector<Violation> check_plan(const Problem& problem, const Plan& plan) {
  return Checker(problem, plan).run();
}

}  // namespace plait
