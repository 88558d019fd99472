#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "cost/comm/series.h"
#include "cost/layer/measured.h"

namespace plait {

// Both passes of a unit.
struct MeasuredPasses {
  Seconds device;
  Seconds launch;  // by the host; 0 where it is not known
};

// All that was measured of one kind on one device type, read for one sharding.
class MeasuredPoints {
 public:
  MeasuredPoints(const MeasuredPlace& place, const AnalyticCost& analytic);

  bool empty() const { return samples_.empty(); }
  bool inside() const { return inside_; }
  int tensor() const { return tensor_; }
  int sequence() const { return sequence_ == model_.sequence_length ? 0 : sequence_; }

  // Of one field, by micro-batch.
  template <auto Member>
  Series series() const {
    std::vector<Point> points;
    for (const auto& [micro_batch, sample] : samples_)
      if (const auto& own = sample.*Member)
        points.push_back({.x = static_cast<double>(micro_batch), .value = own->value});
    return Series(std::move(points));
  }

  // At the micro-batch that is nearest to the wanted one.
  MeasuredPasses passes() const;

  // Of the measured times, weighted with them; 0 where none is known.
  double spread() const;

  // The degrees other than the micro-batch, and the cut, are those of a measurement.
  bool same_degrees() const;

  // The value of a series for the sharding; `part` picks the same from an analytic cost.
  template <typename PartOf>
  double value(const Series& series, const PartOf& part) const {
    const double b = sharding_.samples;
    double at = 0;
    if (series.has(b) || series.size() >= 2) {
      at = series.at(b);
    } else {
      const Point& only = series.front();
      // What analytic times have of ops without a shape does not grow with the micro-batch.
      at = is_only_measured(kind_)
               ? series.at(b)
               : only.value * ratio(part(there()), part(measured_conditions(only.x)));
    }
    return same_degrees() ? at : at * ratio(part(here()), part(there()));
  }

 private:
  using Entry = std::pair<const ComputeKey, ComputeSample>;

  static std::vector<const Entry*> entries_of(const MeasuredPlace& place, int split);
  static double ratio(double a, double b) { return a > 0 && b > 0 ? a / b : 1; }
  int tokens(const ComputeKey& key) const;

  // The analytic costs where it was measured, but at micro-batch b.
  UnitCosts measured_conditions(double b) const;
  // At the micro-batch of the sharding.
  const UnitCosts& there() const;
  // The analytic costs of the sharding itself.
  const UnitCosts& here() const;

  const Model& model_;
  const LayerKind& kind_;
  const LayerKind* measured_;  // the kind, or as it is usually cut
  const Sharding& sharding_;
  const AnalyticCost& analytic_;
  std::vector<std::pair<int, ComputeSample>> samples_;  // by micro-batch
  int tensor_ = 1;
  int sequence_ = 1;
  bool inside_ = false;
  mutable std::optional<UnitCosts> there_;
  mutable std::optional<UnitCosts> here_;
};

}  // namespace plait
