#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "search/paths/layer_game.h"
#include "search/uniform/division/cut_search.h"
#include "search/uniform/division/interleaved_stage.h"
#include "search/uniform/division/layer_loads.h"
#include "search/uniform/layout_stages.h"

namespace plait {

// Lower bounds on all cuts of a layout whose stages are placed on the hosts in a given order.
class OrderBounds {
 public:
  // `work`: relative to the usual. Where `stop` says so, bounds are cut short: they hold, but are
  // lower.
  OrderBounds(const UniformLayout& layout, const Space& space, LayoutStages& stages, double work,
              std::function<bool()> stop);

  // Nothing for other models; then only tied() is known.
  const std::optional<LayersByKind>& layers() const { return layers_; }
  // An embedding, layers of one kind and a head: the models of most people.
  bool has_equal_layers() const { return layers_ && layers_->equal; }

  // Of embeddings that the first and the last stage share; after the pipeline.
  Seconds tied() const;
  // Whatever the cut is; no more is asked for than `enough`. In chunks, and of a V, with what is
  // known of the stages and with which layers the bound is reached, where it is below that.
  struct OfCuts {
    Seconds bound;
    InterleavedPipeline pipeline;
    std::vector<int> layers;
  };
  OfCuts of_any_cut(Seconds enough);
  Seconds busiest_link();
  // The first stage of a V has a micro-batch until it has been through all chunks and back.
  Seconds way_through_v();
  InterleavedPipeline interleaved_pipeline();  // but for what fits
  InterleavedPipeline fitting_pipeline();
  // Whatever the layers of each stage, by the paths of the step (layer_game.h): stages have as many
  // at most as the pipeline says. `recompute_first`: layers of every chunk in full, others not.
  LayerBound divide(const InterleavedPipeline& pipeline, int recompute_first, Seconds enough,
                    const CutLimits& limits);
  int most_layers(int stage);    // that fit, of an interleaved one
  double live(int stage) const;  // micro-batches in flight

  // So many first layers of every chunk are recomputed, and the others not at all.
  struct Number {
    int first = 0;
    Seconds bound;
    InterleavedPipeline pipeline{};  // with what fits
  };
  // Those that may be faster than the limit, lowest bound first: of plain pipelines, up to `most`,
  // and of interleaved ones. Chunks of a stage differ by a unit at most, so that of n layers in v
  // chunks min(v first, n) are recomputed, or one less where the embedding or the head is there.
  std::vector<Number> numbers(Seconds limit, int most);
  std::vector<Number> numbers_in_chunks(Seconds limit);

 private:
  std::vector<LayerLoad> layer_loads(Seconds limit);
  double least_pipeline(const std::vector<LayerLoad>& loads, int first, double limit) const;
  InterleavedStage bound_stage(int s, InterleavedPipeline& pipeline);
  StagePlace place_of(int s) const;
  HandOver least_over(int s);
  HandOver least_wrap() const;
  double wire_of_sends(int s);

  const UniformLayout& layout_;
  const Space& space_;
  const Problem& problem_;
  LayoutStages& stages_;
  double work_;
  std::function<bool()> stop_;
  int units_;
  std::optional<LayersByKind> layers_;
  std::optional<StepGraph> graph_;  // with the hand-overs of the order that was asked for last
  // By signature, place, most layers and how many are recomputed.
  std::map<std::array<int, 4>, StageDivisions> divisions_;
};

}  // namespace plait
