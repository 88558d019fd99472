#include "io/plan/aceso_onto_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "cost/aceso_table.h"
#include "io/profile/aceso_mapping.h"
#include "model/op_cuts.h"

namespace plait {
namespace {

// How one op runs, and in which stage.
struct PlacedOp {
  int stage = 0;
  Span span;
};

std::vector<PlacedOp> placed_ops(const Plan& plan) {
  std::vector<PlacedOp> ops;
  for (int s = 0; s < plan.stage_count(); ++s)
    for (const Span& span : plan.stages[s].spans)
      for (int u = span.units.begin; u < span.units.end; ++u) ops.push_back({s, span});
  return ops;
}

// Units of the model that are one of Aceso's ops, by its name.
class Units {
 public:
  Units(const Model& fine, std::string family) : fine_(fine), family_(std::move(family)) {}

  // The first one after `last` that is; or `last` again, where two of Aceso's
  // ops are one here.
  std::optional<int> next(int last, const std::string& op, const std::string& before) const {
    if (last >= 0 && op != before && is_unit_of(family_, op, fine_.unit(last))) return last;
    for (int u = last + 1; u < fine_.unit_count(); ++u)
      if (is_unit_of(family_, op, fine_.unit(u))) return u;
    return std::nullopt;
  }

 private:
  const Model& fine_;
  std::string family_;
};

// Of each of Aceso's ops, the unit that it is a part of.
std::vector<int> units_of(const AcesoPlan& read, const Model& fine, const std::string& where) {
  const Model& chain = read.problem.model;
  const Units units(fine, aceso_family(chain.name));
  std::vector<int> out;
  std::string before;
  for (int i = 0; i < chain.unit_count(); ++i) {
    const std::string& op = chain.unit(i).name;
    const auto unit = units.next(out.empty() ? -1 : out.back(), op, before);
    if (!unit)
      throw InputError(where, fmt::format("is of {}, whose op {} ({}) {} does not have", chain.name,
                                          i, op, fine.name));
    out.push_back(*unit);
    before = op;
  }
  // Every product of the model is one of theirs; that of cross-attention's keys and values goes
  // with its queries.
  std::vector<bool> met(fine.unit_count());
  for (const int unit : out) met[unit] = true;
  for (int u = 0; u < fine.unit_count(); ++u) {
    const Op& op = fine.unit(u).ops[0];
    const bool counts = ways_to_cut(fine.unit(u)) > 1 && op.name != "cross.kv";
    if (counts && !met[u])
      throw InputError(where, fmt::format("is of {}, which has nothing for unit {} ({}) of {}",
                                          chain.name, u, fine.unit(u).name, fine.name));
  }
  return out;
}

// Where the configuration's cuts go: each is put before an op that begins a
// unit.
std::vector<int> moved_begins(const Plan& plan, const std::vector<int>& unit_of) {
  std::vector<int> begins;
  for (const Stage& stage : plan.stages) {
    int at = stage.spans.front().units.begin;
    int first = at;
    while (first > 0 && unit_of[first - 1] == unit_of[at]) --first;
    int end = at;
    while (end < static_cast<int>(unit_of.size()) && unit_of[end] == unit_of[at]) ++end;
    if (first < at) at = at - first < end - at ? first : end;
    begins.push_back(at);
  }
  return begins;
}

// Stages that begin at these ops. An op that changes its stage is run as its
// new neighbour.
Plan with_begins(const Plan& plan, const std::vector<int>& begins) {
  const std::vector<PlacedOp> ops = placed_ops(plan);
  Plan out = plan;
  for (int s = 0; s < plan.stage_count(); ++s) {
    Stage& stage = out.stages[s];
    stage.spans.clear();
    const int end = s + 1 < plan.stage_count() ? begins[s + 1] : static_cast<int>(ops.size());
    for (int i = begins[s]; i < end; ++i) {
      Span span = ops[i].stage == s  ? ops[i].span
                  : ops[i].stage < s ? plan.stages[s].spans.front()
                                     : plan.stages[s].spans.back();
      if (ops[i].stage != s) span.split = 0;
      span.units = {i, i + 1};
      stage.spans.push_back(span);
    }
    join_alike(stage);
  }
  return out;
}

}  // namespace

MappedAcesoPlan map_aceso_plan(const AcesoPlan& read, const Model& fine, const std::string& where) {
  const std::vector<int> unit_of = units_of(read, fine, where);
  const std::vector<int> begins = moved_begins(read.plan, unit_of);
  MappedAcesoPlan out{read.plan, with_begins(read.plan, begins), {}, 0};
  for (int s = 1; s < read.plan.stage_count(); ++s) {
    const int from = read.plan.stages[s].spans.front().units.begin;
    if (begins[s] == from) continue;
    out.moves.push_back(fmt::format("the cut before {} (op {}) moves to before {} (op {})",
                                    read.problem.model.unit(from).name, from,
                                    read.problem.model.unit(begins[s]).name, begins[s]));
  }
  const std::vector<PlacedOp> ops = placed_ops(out.moved);
  for (Stage& stage : out.plan.stages) stage.spans.clear();
  PlacedOp now = ops.front();
  std::size_t i = 0;
  for (int u = 0; u < fine.unit_count(); ++u) {
    int parts = 0;
    int recomputed = 0;
    for (; i < ops.size() && unit_of[i] == u; ++i, ++parts) {
      if (parts == 0) now = ops[i];
      recomputed += ops[i].span.recompute == Recompute::full ? 1 : 0;
      out.mixed += parts > 0 && (ops[i].span.tensor != now.span.tensor ||
                                 ops[i].span.recompute != now.span.recompute);
    }
    Span span = now.span;
    if (parts > 0)
      span.recompute =
          2 * recomputed >= parts && recomputed > 0 ? Recompute::full : Recompute::none;
    if (span.split >= ways_to_cut(fine.unit(u))) span.split = 0;
    span.units = {u, u + 1};
    out.plan.stages[now.stage].spans.push_back(span);
  }
  for (Stage& stage : out.plan.stages) join_alike(stage);
  return out;
}

}  // namespace plait
