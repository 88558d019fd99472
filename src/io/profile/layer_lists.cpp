#include "io/profile/layer_lists.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "plan/plan.h"

namespace plait {
namespace {

// Units that are layers, as opposed to what stands before, between and after the stacks of them.
bool is_block(const LayerKind& kind) {
  const std::string& name = kind.name;
  return name != "embedding" && name != "decoder_embedding" && name != "head" && name != "stem" &&
         name != "latent" && name != "image" && !name.starts_with("upsample");
}

std::vector<UnitRange> stacks_of(const Model& model) {
  std::vector<UnitRange> stacks;
  for (int u = 0; u < model.unit_count(); ++u) {
    if (!is_block(model.unit(u))) continue;
    if (stacks.empty() || stacks.back().end != u) stacks.push_back({.begin = u, .end = u});
    ++stacks.back().end;
  }
  return stacks;
}

// "embedding, 24 decoder, head"
std::string in_words(const Model& model) {
  std::vector<std::string> parts;
  for (int u = 0; u < model.unit_count();) {
    int end = u;
    while (end < model.unit_count() && model.units[end] == model.units[u]) ++end;
    parts.push_back(end - u == 1 ? model.unit(u).name
                                 : fmt::format("{} {}", end - u, model.unit(u).name));
    u = end;
  }
  if (parts.size() > 12) return fmt::format("{} units", model.unit_count());
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Which unit an entry is a part of; entries that share a `unit` are added. `share` of it counts.
struct Part {
  int kind = 0;
  int unit = 0;
  double share = 1;
};
using Parts = std::vector<Part>;  // of one entry

double time_of(const ComputeSample& entry) {
  return entry.both.value_or(entry.forward.value_or(Seconds(0))).value;
}

class Assignment {
 public:
  Assignment(const Model& model, ListLayout layout, std::span<const ComputeSample> entries)
      : model_(model),
        layout_(layout),
        stacks_(stacks_of(model)),
        count_(static_cast<int>(entries.size())) {
    parts_.resize(count_);
    found_ =
        one_to_one() || one_stack(entries) || layers_only() || two_stacks() || by_size(entries);
  }

  bool found() const { return found_; }
  const std::vector<Parts>& parts() const { return parts_; }
  const std::string& note() const { return note_; }

  std::string expected() const {
    std::string text =
        fmt::format("{} entries, one for each of {}", model_.unit_count(), in_words(model_));
    if (stacks_.size() == 1)
      text += fmt::format("; or {}, with {} before and {} after the layers; or {} layers only",
                          stacks_[0].size() + layout_.before + layout_.after, layout_.before,
                          layout_.after, stacks_[0].size());
    if (stacks_.size() == 2)
      text += fmt::format("; or {}, without the head", stacks_[0].size() + stacks_[1].size() + 2);
    return text;
  }

 private:
  void give(int entry, int unit) {
    parts_[entry].push_back({.kind = model_.units[unit], .unit = unit});
  }

  bool one_to_one() {
    if (count_ != model_.unit_count()) return false;
    for (int i = 0; i < count_; ++i) give(i, i);
    return true;
  }

  bool one_stack(std::span<const ComputeSample> entries) {
    if (stacks_.size() != 1 || count_ <= layout_.before + layout_.after) return false;
    const UnitRange stack = stacks_[0];
    const int inner = count_ - layout_.before - layout_.after;
    const bool alike =
        std::all_of(model_.units.begin() + stack.begin, model_.units.begin() + stack.end,
                    [&](int kind) { return kind == model_.units[stack.begin]; });
    if (stack.begin < 1 || stack.end >= model_.unit_count()) return false;
    if (inner != stack.size() &&
        (!alike || count_ == stack.size() || !similar(entries.subspan(layout_.before, inner))))
      return false;
    for (int i = 0; i < layout_.before; ++i) give(i, stack.begin - 1);
    for (int i = 0; i < inner; ++i) {
      // Beyond the model's own units when the list is longer: the number only keeps them apart.
      const int kind =
          inner == stack.size() ? model_.units[stack.begin + i] : model_.units[stack.begin];
      parts_[layout_.before + i].push_back({.kind = kind, .unit = model_.unit_count() + i});
    }
    for (int i = count_ - layout_.after; i < count_; ++i) give(i, stack.end);
    if (inner != stack.size())
      note_ = fmt::format("{} layers were measured and the model has {}: each costs their mean",
                          inner, stack.size());
    return true;
  }

  // Within a factor of 2 of their median.
  static bool similar(std::span<const ComputeSample> entries) {
    std::vector<double> times;
    for (const ComputeSample& entry : entries) times.push_back(time_of(entry));
    std::ranges::sort(times);
    const double median = times[times.size() / 2];
    return times.front() >= median / 2 && times.back() <= median * 2;
  }

  bool layers_only() {
    if (stacks_.size() != 1 || count_ != stacks_[0].size()) return false;
    for (int i = 0; i < count_; ++i) give(i, stacks_[0].begin + i);
    note_ = "only layers were measured: what is before and after them is analytic";
    return true;
  }

  bool two_stacks() {
    if (stacks_.size() != 2) return false;
    const UnitRange first = stacks_[0];
    const UnitRange second = stacks_[1];
    if (count_ != first.size() + second.size() + 2) return false;
    if (first.begin != 1 || second.begin != first.end + 1) return false;
    for (int i = 0; i < count_; ++i) give(i, i);
    note_ = "the head was not measured: it is analytic";
    return true;
  }

  bool by_size(std::span<const ComputeSample> entries) {
    int blocks = 0;
    for (const UnitRange& stack : stacks_) blocks += stack.size();
    if (blocks == 0 || count_ < blocks) return false;
    std::vector<int> order(count_);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(
        order, [&](int a, int b) { return time_of(entries[a]) > time_of(entries[b]); });
    std::vector<bool> large(count_, false);
    for (int i = 0; i < blocks; ++i) large[order[i]] = true;
    int unit = 0;
    int entry = 0;
    for (const UnitRange& stack : stacks_) {
      if (!between(unit, stack.begin, entry, large)) return false;
      for (unit = stack.begin; unit < stack.end; ++unit, ++entry) {
        if (entry == count_ || !large[entry]) return false;
        give(entry, unit);
      }
    }
    if (!between(unit, model_.unit_count(), entry, large)) return false;
    note_ = fmt::format("the {} largest of {} entries are taken as the layers", blocks, count_);
    return entry == count_;
  }

  // Gives the small entries from `entry` on to the units [begin, end), each an equal part.
  bool between(int begin, int end, int& entry, const std::vector<bool>& large) {
    for (; entry < count_ && !large[entry]; ++entry) {
      if (begin == end) return false;
      for (int u = begin; u < end; ++u)
        parts_[entry].push_back({.kind = model_.units[u], .unit = u, .share = 1.0 / (end - begin)});
    }
    return true;
  }

  const Model& model_;
  ListLayout layout_;
  std::vector<UnitRange> stacks_;
  int count_;
  std::vector<Parts> parts_;
  std::string note_;
  bool found_ = false;
};

template <typename Quantity>
void add(std::optional<Quantity>& sum, const std::optional<Quantity>& value, double share) {
  if (value) sum = sum.value_or(Quantity(0)) + *value * share;
}

void add(ComputeSample& sum, const ComputeSample& sample, double share) {
  add(sum.forward, sample.forward, share);
  add(sum.backward, sample.backward, share);
  add(sum.both, sample.both, share);
  sum.communication_inside |= sample.communication_inside;
  sum.synchronised |= sample.synchronised;
  add(sum.saved_activations, sample.saved_activations, share);
  add(sum.input, sample.input, share);
  add(sum.workspace, sample.workspace, share);
  add(sum.memory, sample.memory, share);
  add(sum.optimizer, sample.optimizer, share);
}

}  // namespace

MappedLists map_lists(std::span<const LayerList> lists, const Model& model, ListLayout layout) {
  MappedLists mapped;
  for (const LayerList& list : lists) {
    if (list.entries.size() != lists.front().entries.size())
      throw InputError(list.where, fmt::format("has {} layers, but {} has {}", list.entries.size(),
                                               lists.front().where, lists.front().entries.size()));
    const Assignment assignment(model, layout, list.entries);
    if (!assignment.found())
      throw InputError(list.where,
                       fmt::format("has {} entries, which do not fit {}: expected {}",
                                   list.entries.size(), model.name, assignment.expected()));
    if (!assignment.note().empty() &&
        std::ranges::find(mapped.notes, assignment.note()) == mapped.notes.end())
      mapped.notes.push_back(assignment.note());
    std::map<int, std::map<int, ComputeSample>> units;  // by kind, then unit
    for (std::size_t i = 0; i < list.entries.size(); ++i)
      for (const Part& part : assignment.parts()[i])
        add(units[part.kind][part.unit], list.entries[i], part.share);
    for (const auto& [kind, of] : units) {
      ComputeSample mean;
      for (const auto& [unit, sample] : of) add(mean, sample, 1.0 / static_cast<double>(of.size()));
      const ComputeKey key{.unit = model.kinds[kind].name,
                           .device_type = list.device_type,
                           .tensor = list.tensor,
                           .micro_batch = list.micro_batch};
      if (!mapped.profile.compute.emplace(key, mean).second)
        throw InputError(list.where, "the same point is measured by another file, too");
    }
  }
  return mapped;
}

}  // namespace plait
