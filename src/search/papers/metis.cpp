#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>

#include "search/papers/device_groups.h"
#include "search/papers/layer_balance.h"
#include "search/papers/paper_search.h"
#include "search/space/planners.h"

// Metis (Um et al., USENIX ATC 2024): orders of the device types, device groups of powers of two,
// degrees of each stage by a greedy path from data to tensor parallelism, layers and samples by
// speed.
namespace plait {
namespace {

// Limits of work and memory, not of the paper's: the published searches have at most 64 devices.
constexpr int kMostStages = 512;
constexpr std::size_t kMostCutDevices = 1 << 22;  // of all groupings together

class MetisSearch {
 public:
  explicit MetisSearch(const SearchContext& context)
      : context_(context), cluster_(context.problem.cluster), search_(context) {}

  SearchResult run() {
    const std::string nothing =
        "metis uses all devices in groups of powers of two, which these layers, nodes and batch do "
        "not allow";
    if (!search_.obstacle().empty()) return search_.result(nothing);
    std::vector<int> divisors = divisors_of(context_.problem.job.global_batch);
    std::ranges::reverse(divisors);
    for (const int m : divisors)
      if (search_.tries(m)) batches_.push_back(search_.settings(m));
    std::vector<int> types = node_types(cluster_);
    std::ranges::sort(types);
    double sequences = 1;
    for (std::size_t i = 2; i <= types.size(); ++i) sequences *= static_cast<double>(i);
    double done = 0;
    do {
      order_ = devices_of(cluster_, nodes_by_type(cluster_, types));
      forget_cuts();
      try_sequence();
      search_.report_progress(++done / sequences);
    } while (!search_.stopped() && std::ranges::next_permutation(types).found);
    return search_.result(nothing);
  }

 private:
  // A group of the order's devices, cut in one way.
  struct Cut {
    Slot slot;
    PaperFrame* frame = nullptr;  // none when the slot is not allowed
  };
  // A group that has reached a tensor degree. Its paces are the least that it has on the way to
  // higher ones, by position in batches_; without kinds when it has none.
  struct Piece {
    int from = 0;
    int group = 0;
    int tensor = 1;
    std::vector<const Cut*> cuts;  // both found when first asked for
    std::vector<const Pace*> paces;
  };
  // Neighbouring groups and the least time of a hand-over between them, by position in batches_;
  // negative where not known yet.
  struct PieceLink {
    int from = 0;
    int group = 0;
    int next = 0;
    std::vector<Seconds> sends;
  };

  void try_sequence() {
    const GroupRules rules{cluster_.device_count(), context_.options.group_scale_variance,
                           context_.options.max_permute_len};
    const int most = std::min({cluster_.device_count(), search_.units(), kMostStages});
    for (int stages = 1; stages <= most && !search_.stopped(); ++stages)
      if (search_.allows_stages(stages))
        for_each_grouping(rules, stages,
                          [&](const std::vector<int>& groups) { return try_groups(groups); });
  }

  // False when time is up.
  bool try_groups(const std::vector<int>& groups) {
    const Pins& pins = context_.options.pins;
    std::vector<int>& tensor = tensor_;
    tensor.clear();
    const int context = search_.settings(1).context;
    for (const int group : groups) {
      int degree = pins.tensor.value_or(1);
      if (pins.data) degree = std::max(1, group / (*pins.data * context));
      if (group % (degree * context) != 0) return !search_.stopped();
      tensor.push_back(degree);
    }
    if (search_.forget_many_frames() || cut_devices_ > kMostCutDevices) forget_cuts();
    find_pieces(groups);
    if (search_.has_cutoff()) find_links(groups);
    for (std::size_t b = 0; b < batches_.size(); ++b) {
      if (search_.has_cutoff() && is_hopeless(first_pieces_, b)) continue;
      walk(b);
      if (search_.stopped()) return false;
    }
    return !search_.stopped();
  }

  // From the first degrees towards tensor parallel, one stage at a time, until a plan fits at once.
  void walk(std::size_t batch) {
    pieces_here_ = first_pieces_;
    while (!search_.stopped()) {
      if (attempt(pieces_here_, batch)) return;
      const int stage = next_stage(pieces_here_, batches_[batch]);
      if (stage < 0) return;
      const Piece& before = *pieces_here_[stage];
      pieces_here_[stage] = &piece(before.from, before.group, 2 * before.tensor);
      if (search_.has_cutoff() && is_hopeless(pieces_here_, batch)) return;
    }
  }

  int next_stage(const std::vector<Piece*>& pieces, const PlanSettings& settings) const {
    int best = -1;
    for (int s = 0; s < static_cast<int>(pieces.size()); ++s) {
      const Piece& own = *pieces[s];
      const int data = own.group / (own.tensor * settings.context);
      if (data % 2 != 0 || own.tensor * 2 > context_.options.max_tensor) continue;
      if (best < 0 || room_[s] < room_[best]) best = s;
    }
    return best;
  }

  void forget_cuts() {
    cuts_.clear();
    pieces_.clear();
    links_.clear();
    sends_.clear();
    tied_.clear();
    lower_.clear();
    cut_devices_ = 0;
  }

  Piece& piece(int from, int group, int tensor) {
    Piece& piece = pieces_[{from, group, tensor}];
    if (piece.cuts.empty()) {
      piece.from = from;
      piece.group = group;
      piece.tensor = tensor;
      piece.cuts.resize(batches_.size());
      piece.paces.resize(batches_.size());
    }
    return piece;
  }

  const Cut& cut(Piece& piece, std::size_t batch) {
    const Cut*& own = piece.cuts[batch];
    if (own == nullptr) own = &cut(piece.from, piece.group, piece.tensor, batches_[batch]);
    return *own;
  }

  const Cut& cut(int from, int group, int tensor, const PlanSettings& settings) {
    const auto [at, is_new] = cuts_.try_emplace({settings.micro_batches, from, group, tensor});
    Cut& cut = at->second;
    if (!is_new) return cut;
    const auto first = order_.begin() + static_cast<std::ptrdiff_t>(from);
    cut.slot.devices.assign(first, first + group);
    cut_devices_ += group;
    cut.slot.tensor = tensor;
    cut.slot.data = group / (tensor * settings.context);
    divide_samples(cut.slot, settings);
    if (is_small_enough(cut.slot, settings) && search_.allows(cut.slot, settings))
      cut.frame = &search_.frame(settings, cut.slot);
    return cut;
  }

  void find_pieces(const std::vector<int>& groups) {
    first_pieces_.clear();
    int from = 0;
    for (std::size_t s = 0; s < groups.size(); from += groups[s++])
      first_pieces_.push_back(&piece(from, groups[s], tensor_[s]));
  }

  void find_links(const std::vector<int>& groups) {
    path_.clear();
    int from = 0;
    for (std::size_t s = 0; s + 1 < groups.size(); from += groups[s++]) {
      PieceLink& link = links_[{from, groups[s], groups[s + 1]}];
      if (link.sends.empty())
        link = {from, groups[s], groups[s + 1], std::vector<Seconds>(batches_.size(), Seconds(-1))};
      path_.push_back(&link);
    }
  }

  const Pace& pace(Piece& piece, std::size_t batch) {
    const Pace*& best = piece.paces[batch];
    if (best != nullptr) return *best;
    best = &no_pace_;
    const PlanSettings& settings = batches_[batch];
    if (PaperFrame* frame = cut(piece, batch).frame)
      best = &search_.pace(*frame, settings.micro_batches);
    const int twice = 2 * piece.tensor;
    if (piece.group / (piece.tensor * settings.context) % 2 != 0 || twice > piece.group ||
        twice > context_.options.max_tensor)
      return *best;
    const Pace& later = pace(this->piece(piece.from, piece.group, twice), batch);
    if (!later.empty()) best = best->empty() ? &later : &lower_of(*best, later);
    return *best;
  }

  // One for all pieces that are alike.
  const Pace& lower_of(const Pace& own, const Pace& later) {
    const auto [at, is_new] = lower_.try_emplace({&own, &later}, own);
    if (is_new) at->second.lower(later);
    return at->second;
  }

  Seconds send_floor(PieceLink& link, std::size_t batch) {
    const std::span<const DeviceId> order(order_);
    if (link.sends[batch] < Seconds(0))
      link.sends[batch] = search_.send_floor(batches_[batch], order.subspan(link.from, link.group),
                                             order.subspan(link.from + link.group, link.next));
    return link.sends[batch];
  }

  Seconds tied(const std::vector<Piece*>& pieces, int tensor) {
    const int first = pieces.front()->group;
    const int last = pieces.back()->group;
    const auto [at, is_new] = tied_.try_emplace({first, last, tensor});
    const std::span<const DeviceId> order(order_);
    if (is_new) at->second = search_.tied_sync(order.first(first), order.last(last), tensor);
    return at->second;
  }

  // Whether no plan on the way from these degrees is faster than the cutoff.
  bool is_hopeless(const std::vector<Piece*>& pieces, std::size_t batch) {
    stages_.clear();
    for (Piece* piece : pieces) {
      stages_.push_back(&pace(*piece, batch));
      if (stages_.back()->empty()) return true;
    }
    PaperSearch::Between between;
    for (PieceLink* link : path_) between.sends += send_floor(*link, batch);
    if (pieces.size() > 1) {
      // The last group has at most this tensor degree.
      const Pins& pins = context_.options.pins;
      const int last = pieces.back()->group;
      between.tied = tied(
          pieces, pins.tensor || pins.data ? last : std::min(last, context_.options.max_tensor));
    }
    return search_.is_hopeless(stages_, between, batches_[batch].micro_batches);
  }

  // True when the layers as first balanced fit, so that no more tensor parallelism is called for.
  // Sets room_ if not.
  bool attempt(const std::vector<Piece*>& pieces, std::size_t batch) {
    layout_.settings = batches_[batch];
    layout_.slots.clear();
    layout_.frames.clear();
    room_.clear();
    bool valid = true;
    for (Piece* piece : pieces) {
      const Cut& own = cut(*piece, batch);
      valid = valid && own.frame != nullptr;
      layout_.frames.push_back(own.frame);
      room_.push_back(1.0 / own.slot.data);
    }
    if (!valid) return false;
    const LayerBalance::Result& balance = balance_.run(layout_);
    if (!balance.at_once)
      for (std::size_t s = 0; s < room_.size(); ++s) room_[s] = 1 - balance.fill[s];
    const bool slow = balance.fits && (search_.is_slow(layout_, balance.cuts) ||
                                       is_slow_by_sends(pieces, batch, balance.cuts));
    if (!slow && (balance.fits || search_.has_nothing())) {
      for (Piece* piece : pieces) layout_.slots.push_back(cut(*piece, batch).slot);
      if (balance.fits)
        search_.simulate(layout_, balance.cuts);
      else
        search_.offer(layout_, balance.cuts);
    }
    return balance.at_once;
  }

  bool is_slow_by_sends(const std::vector<Piece*>& pieces, std::size_t batch,
                        const std::vector<int>& cuts) {
    if (!search_.has_cutoff()) return false;
    const PlanSettings& settings = batches_[batch];
    between_.between.clear();
    between_.tied = {};
    for (std::size_t s = 0; s + 1 < pieces.size(); ++s) {
      Piece& own = *pieces[s];
      Piece& next = *pieces[s + 1];
      const int kind = context_.problem.model.units[cuts[s + 1] - 1];  // no other unit matters
      const auto [at, is_new] = sends_.try_emplace(
          {settings.micro_batches, own.from, own.group, own.tensor, next.group, next.tensor, kind});
      if (is_new)
        at->second =
            search_.send(settings, cut(own, batch).slot, cut(next, batch).slot, cuts[s + 1]);
      between_.between.push_back(at->second);
    }
    if (pieces.size() > 1) between_.tied = tied(pieces, pieces.back()->tensor);
    return search_.is_slow(layout_, cuts, &between_);
  }

  bool is_small_enough(const Slot& slot, const PlanSettings& settings) const {
    const int most = context_.options.max_micro_batch;
    const int micro_batch = context_.problem.job.global_batch / settings.micro_batches;
    const int largest =
        slot.shares.empty() ? micro_batch / slot.data : *std::ranges::max_element(slot.shares);
    return most == 0 || largest <= most;
  }

  // Metis' data balancer: replicas of a stage with several device types get samples in proportion
  // to their speed at one sample, at least one each.
  void divide_samples(Slot& slot, const PlanSettings& settings) {
    const int size = slot.tensor * settings.context;
    const int micro_batch = context_.problem.job.global_batch / settings.micro_batches;
    const auto type_at = [&](int i) { return cluster_.device(slot.devices[i]).type; };
    bool mixed = false;
    for (int r = 1; r < slot.data; ++r) mixed = mixed || type_at(r * size) != type_at(0);
    if (!mixed || context_.options.pins.micro_batch || slot.data > micro_batch) return;
    PlanSettings one_sample = settings;
    one_sample.micro_batches = context_.problem.job.global_batch;
    one_sample.expert = 1;
    std::vector<double> ideal;
    for (int r = 0; r < slot.data; ++r) {
      const auto first = slot.devices.begin() + static_cast<std::ptrdiff_t>(r) * size;
      const PaperFrame& frame =
          search_.frame(one_sample, {{first, first + size}, slot.tensor, 1, {}});
      ideal.push_back(1 / search_.time(frame, {0, search_.units()}).value);
    }
    const double sum = std::accumulate(ideal.begin(), ideal.end(), 0.0);
    for (double& samples : ideal) samples *= micro_batch / sum;
    slot.shares = rounded(ideal, micro_batch);
    if (std::ranges::all_of(slot.shares, [&](int share) { return share == slot.shares[0]; }))
      slot.shares.clear();
  }

  // Whole numbers, at least 1, that add up to `sum`: each time one more for who lacks most.
  static std::vector<int> rounded(const std::vector<double>& ideal, int sum) {
    std::vector<int> whole;
    for (const double x : ideal) whole.push_back(std::max(1, static_cast<int>(std::floor(x))));
    int left = sum - std::accumulate(whole.begin(), whole.end(), 0);
    for (; left != 0; left += left > 0 ? -1 : 1) {
      std::size_t best = 0;
      const int step = left > 0 ? 1 : -1;
      const auto lack = [&](std::size_t i) { return step * (ideal[i] - whole[i]); };
      for (std::size_t i = 1; i < ideal.size(); ++i)
        if (whole[best] + step < 1 || (whole[i] + step >= 1 && lack(i) > lack(best))) best = i;
      whole[best] += step;
    }
    return whole;
  }

  const SearchContext& context_;
  const Cluster& cluster_;
  PaperSearch search_;
  std::vector<DeviceId> order_;
  std::vector<PlanSettings> batches_;  // by number of micro-batches, most first

  struct Hash {
    template <std::size_t N>
    std::size_t operator()(const std::array<int, N>& key) const {
      std::size_t hash = 0;
      for (const int part : key) hash = (hash ^ static_cast<unsigned>(part)) * 0x9E3779B97F4A7C15;
      return hash ^ hash >> 32;
    }
  };
  template <std::size_t N, typename Value>
  using ByNumbers = std::unordered_map<std::array<int, N>, Value, Hash>;
  // All of the order.
  ByNumbers<4, Cut> cuts_;         // micro-batches, where it begins, devices, tensor degree
  ByNumbers<3, Piece> pieces_;     // where it begins, devices, tensor degree
  ByNumbers<3, PieceLink> links_;  // where it begins, devices, those of the next group
  ByNumbers<7, Seconds> sends_;    // of two cuts, and the kind of the unit before
  ByNumbers<3, Seconds> tied_;     // devices of the first and last group, tensor degree of the last
  std::map<std::pair<const Pace*, const Pace*>, Pace> lower_;  // of two
  std::size_t cut_devices_ = 0;                                // in all of cuts_

  // Of the groups that are tried.
  std::vector<int> tensor_;
  std::vector<Piece*> first_pieces_;
  std::vector<PieceLink*> path_;
  std::vector<const Pace*> stages_;
  const Pace no_pace_;
  std::vector<Piece*> pieces_here_;  // on the walk
  std::vector<double> room_;         // what is free of the memory, or less for more replicas
  Layout layout_;
  LayerBalance balance_{search_};
  PaperSearch::Sends between_;
};

}  // namespace

SearchResult search_like_metis(const SearchContext& context) { return MetisSearch(context).run(); }

}  // namespace plait
