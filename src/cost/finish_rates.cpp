#include <algorithm>

#include "cost/comm/overlap.h"
#include "cost/span_frame.h"

// What a step ends with, as rates of parameters: for searches.
namespace plait {

Seconds SpanFrame::FinishRates::Way::of(double parameters, double expert_parameters) const {
  Seconds sum = parameters * of_parameter + expert_parameters * of_expert_parameter;
  if (parameters > 0) sum += latency;
  if (expert_parameters > 0) sum += expert_latency;
  return sum;
}

Seconds SpanFrame::FinishRates::finish(const Parameters& run, const Parameters& first,
                                       const Cover& cover) const {
  const auto added = [&](const Way& way, Seconds beside) {
    return std::max(way.of(first.all, first.experts),
                    exposed(way.of(run.all, run.experts), beside, price));
  };
  return added(gradients, cover.backward) + added(weights, cover.forward) + run.all * updated +
         run.experts * expert_updated;
}

std::optional<SpanFrame::FinishRates> SpanFrame::finish_rates() const {
  FinishRates rates;
  const UnitRange whole{0, problem_.model.unit_count()};
  const bool measured = std::ranges::any_of(replicas_, [&](const Replica& replica) {
    return is_measured(replica.table->cost(whole, Recompute::none));
  });
  if (weights_are_cut_ || measured || !problem_.profile.collectives.empty()) return std::nullopt;
  if (shard_copies_ < copies()) return std::nullopt;
  const bool plain = settings_.zero == ZeroStage::off;
  const auto way = [&](double bytes, double ways) {
    if (bytes <= 0) return FinishRates::Way{};
    return FinishRates::Way{
        ways * data_ring_.start(), ways * expert_data_ring_.start(),
        ways * bytes * data_ring_.of_byte() + (plain ? Seconds(0) : piece_latency(data_ring_)),
        ways * bytes * expert_data_ring_.of_byte() +
            (plain ? Seconds(0) : piece_latency(expert_data_ring_))};
  };
  rates.gradients = way(state_.sent_gradient, plain ? 2 : 1);
  if (!plain) rates.weights = way(state_.gathered, 1);
  rates.price = traits_.data_exposed;
  Seconds slowest;
  for (const Replica& replica : replicas_)
    slowest = std::max(slowest, update_time(*replica.device));
  const Seconds host = of_parameter(traits_.host_update);
  rates.updated = (plain ? 1.0 : 1.0 / copies()) * slowest + host;
  rates.expert_updated = (plain ? 1.0 : 1.0 * settings_.expert / copies()) * slowest + host;
  return rates;
}

}  // namespace plait
