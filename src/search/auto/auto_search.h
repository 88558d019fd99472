#pragma once

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "cost/engine.h"
#include "cost/stage_memo.h"
#include "search/auto/candidates.h"
#include "search/auto/label_search.h"
#include "search/auto/uniform_pool_pipelines.h"
#include "search/bound/proof.h"
#include "search/space/search.h"
#include "search/space/shortlist.h"
#include "search/space/space.h"
#include "search/space/units/layers.h"

namespace plait {

// plait's own planner: passes over the settings (micro-batches, ZeRO, context, expert), in the
// order of the table in auto.cpp. Each pass finds better plans, or proves that settings have none,
// or both. Settings are searched in rounds of fixed size; all of a round start from the same
// incumbent, so that the result does not depend on the number of threads.
class AutoSearch {
 public:
  // `memos` are of a search of the same problem that this one is part of.
  explicit AutoSearch(const SearchContext& context, MemoShelf* memos = nullptr);

  SearchResult run();

 private:
  // A row of the table of passes.
  struct Pass {
    const char* name;
    Effort from;  // left out with less
    bool (AutoSearch::*applies)() const;
    void (AutoSearch::*run)();
  };
  static const std::vector<Pass>& passes();
  void run_pass(const Pass& pass, std::vector<PassReport>& reports);

  static constexpr int kKept = 5;  // plans, however few are asked for

  Candidates listed() const {
    return Candidates(context_, space_, engine_, schedule_, {exact_schedule(), may_end()});
  }

  // The passes: auto.cpp; those that close the gap are in auto_gap.cpp, those that search a related
  // problem in auto_nested.cpp.
  void try_layers();
  void try_uniform_pools();
  void try_single_stages();
  void try_beam();
  void try_more_uniform_pools();
  void try_to_fit();
  void ask_papers();
  void search_best_first_at_once();
  void close_gap();
  void branch_and_bound_all();
  void try_one_layout();
  void try_by_stage();
  void try_by_stage_in_full();
  void try_by_stage_with(Effort effort);
  void try_every_plan();
  void try_fewer_types();
  void try_fewer_nodes();
  void try_part(const std::vector<bool>& kept, Effort effort);
  std::vector<bool> devices_of(const std::vector<bool>& nodes) const;
  void move_first();
  void move_best();
  void go_on();
  void prove();
  void prove_with(Effort effort);
  void choose_inside();
  void drop_idle_zero();

  // When they run.
  bool always() const { return true; }
  // Whether plans are free to be of another schedule or beyond the space, for which the bounds of
  // settings do not hold.
  bool is_free() const {
    return (!proves_one_schedule(context_) || is_not_enumerable()) && !found_.empty();
  }
  bool may_prove() const { return is_free() && !is_nested_; }
  bool is_long() const;
  bool is_short() const { return !is_long() || found_.empty(); }
  bool may_go_by_layers() const { return layers_ && context_.options.pins.stages.empty(); }
  bool found_nothing() const { return found_.empty(); }
  bool is_small_and_mixed() const { return is_small() && is_mixed() && is_short(); }
  bool is_small_and_alike() const { return is_small() && !is_mixed() && is_short(); }
  bool exact_schedule() const;
  // Elsewhere these bounds prove nothing, and moves find more for the same work.
  bool goes_best_first() const { return is_short(); }
  bool may_close_gap() const { return is_short() && exact_schedule(); }
  bool may_end() const { return is_small() && is_enumerable() && exact_schedule(); }
  bool may_list_all() const;
  bool recomputes_some() const;
  bool lacks_memory() const;
  bool lacks_memory_on_few_devices() const { return is_small() && lacks_memory_; }
  bool chooses_inside() const;
  bool has_slower_types() const;
  bool has_several_nodes() const;
  // Where hardly anything fits, no plan with one layout does.
  bool may_have_one_layout() const { return is_not_enumerable() && !is_tight_; }
  bool is_not_enumerable() const { return !is_small() || !is_enumerable(); }
  // Whether there are plans beyond those that are listed one by one, under other schedules.
  bool may_move() const { return is_not_enumerable() || is_free(); }

  // Facts that decide how much effort is spent.
  Effort effort() const;
  // Every plan that was free to choose takes at least this long.
  Seconds proven_bound() const { return is_free() ? floor_ : lower_bound(); }
  bool has_reached_target() const;
  bool is_small() const { return devices() <= kExactDevices; }
  bool is_mixed() const { return space_.pools().size() > 1; }
  bool is_enumerable() const;
  bool is_large() const;
  int devices() const { return context_.problem.cluster.device_count(); }
  bool stop() const;

  using CandidatePass = std::function<void(Candidate&, Shortlist&)>;
  // Of the progress bar.
  struct Stretch {
    double from = 0;
    double to = 0;
  };
  // Runs `pass` on the candidates that may still hold something better, and whose bound is below
  // `limit`, round by round.
  void sweep(std::vector<Candidate>& candidates, Stretch stretch, const CandidatePass& pass,
             Seconds limit = Seconds(HUGE_VAL));
  void run_round(std::vector<Candidate>& candidates, const std::vector<int>& round,
                 const CandidatePass& pass);
  // Runs `pass` on the candidates with the lowest bounds, round by round, until the candidate with
  // the lowest bound is one that it has already been run on.
  void sweep_lowest(const CandidatePass& pass);

  // Bounds, then the search that they guide, with each candidate's budgets.
  void search_best_first(Seconds limit, bool is_first);
  void tighten_bounds();
  bool is_far() const;
  bool may_be_far() const;
  bool may_close(double gap) const;
  double effort_for_gap() const;
  void close_gap_with(double effort);

  // No plan of the space is faster, under the schedule that is searched.
  Seconds lower_bound() const {
    return proven_ ? found_.best() : std::min(found_.best(), candidates_.lowest_bound());
  }
  bool is_within(double gap) const { return lower_bound() >= (1 - gap) * wanted(found_); }
  // What a plan must beat.
  Seconds wanted(const Shortlist& found) const {
    return std::min(found.best(), context_.options.cutoff);
  }
  // What was found aside counts as well.
  Seconds best_so_far() const;
  Seconds incumbent(const Shortlist& found) const {
    return exact_schedule() ? wanted(found) : Seconds(HUGE_VAL);
  }

  void offer(const Pipelined& pipeline, const Candidate& c, Shortlist& found);
  void family_pass(Candidate& c, Promising which, Shortlist& found);
  void label_pass(Candidate& c, Shortlist& found, int width, int effort);
  void bound_pass(Candidate& c, Shortlist& found, Seconds enough = Seconds(HUGE_VAL));
  void exact_pass(Candidate& c, Shortlist& found);

  const SearchContext& context_;
  std::chrono::steady_clock::time_point begin_;
  const Space& space_;
  Schedule schedule_;
  const CostEngine& engine_;
  MemoShelf own_memos_{context_.problem};
  MemoShelf& memos_;                 // of the moves
  std::optional<LayerView> layers_;  // of a model whose units are ops
  Candidates candidates_;
  Shortlist found_;
  std::optional<Shortlist> aside_;             // found by the first moves
  Seconds floor_;                              // no plan at all is faster
  Seconds enough_ = Seconds(HUGE_VAL);         // that bounds were asked for
  bool proven_ = false;                        // every plan was listed
  bool is_nested_ = false;                     // only the plans are of interest
  bool is_tight_ = false;                      // nothing fitted at first
  bool lacks_memory_ = false;                  // before or after the moves
  bool lowest_only_ = false;                   // have been searched for the bound
  mutable std::atomic<bool> stopped_ = false;  // some pass was told to stop
};

}  // namespace plait
