#pragma once

#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/units.h"
#include "plan/plan.h"
#include "plan/problem.h"

namespace plait {

// What Metis' program reads of its profile, in SI units. Layers are the model's units.
struct MetisTable {
  struct Point {
    std::vector<Seconds> layers;  // forward and backward
    std::vector<Bytes> memory;    // of each layer, one micro-batch in flight
    Seconds sync;                 // what the whole takes beyond its layers
  };
  // By device type of the cluster, then by tensor degree and samples. Points are not interpolated.
  std::vector<std::map<std::pair<int, int>, Point>> points;
  std::vector<double> parameters;  // of each layer, in elements
  Seconds optimizer;               // of the whole model, on one device, as measured
  Seconds batch_generator;         // of a micro-batch
};

// The parts of a step as Metis' program adds them up.
struct MetisTerms {
  Seconds execution;
  Seconds sync;
  Seconds update;
  Seconds gradients;
  Seconds sends;
  Seconds batches;
  Seconds total() const { return execution + sync + update + gradients + sends + batches; }
};

// The devices of a stage and how they are cut, before it has layers. Of a stage of several device
// types the replicas take samples in proportion to their speed at one sample, rounded by the
// largest fractions; n samples run as one slice for each binary digit of n.
struct MetisCut {
  int tensor = 1;
  int data = 1;
  int samples = 1;          // of a micro-batch on a replica, if all had the same
  std::vector<int> shares;  // where they have not
  Seconds sync;             // of the slowest type
  double bandwidth = 0;     // elements a second, of the slowest type
  // What the replicas run, each kind once: sums of the times of the first 0, 1, .. layers.
  std::vector<std::vector<const std::vector<double>*>> runs;
  // The same sums of bytes, and what the device has.
  std::vector<std::pair<const std::vector<double>*, double>> held;
};

// The step time that Metis' program (Um et al., USENIX ATC 2024) gives to a plan, so that plans can
// be compared with its own by its own measure. With B micro-batches, stages i of (dp, tp) = (d, t),
// m = batch / d / B samples and x_i the time of its layers at (type, t, m):
//
//   execution   (B - 1) max x_i + sum x_i
//   sync        B * max over the types of the last stage of sync(type, t, m)
//   update      max 2 optimizer / t * layers_i / layers
//   gradients   max 2 (d - 1) / d * parameters_i / t / bandwidth
//   sends       sum over cuts of m * (output of the layer; before the last layer vocabulary *
//               sequence / t) / bandwidth
//   batches     B * batch generator
//
// Bandwidths are those inside the nodes, GB/s taken as 2^20 elements a millisecond. Memory is what
// the profile says of one micro-batch, on every device. docs/peers.md.
class MetisFormula {
 public:
  // The table has points of every device type of the cluster, all with as many layers as the model
  // has units.
  MetisFormula(const Problem& problem, const MetisTable& table);

  // Nothing where the devices cannot be cut so: a tensor group of several types, samples that do
  // not divide, a point that was not measured, or a replica without a sample.
  std::optional<MetisCut> cut(std::span<const DeviceId> devices, int data, int tensor,
                              int micro_batches) const;
  Seconds time(const MetisCut& cut, const UnitRange& layers) const;
  bool fits(const MetisCut& cut, const UnitRange& layers) const;
  Seconds update(const MetisCut& cut, const UnitRange& layers) const;
  Seconds gradients(const MetisCut& cut, const UnitRange& layers) const;
  // After the layers that end at `end`, to a stage that has this bandwidth.
  Seconds send(const MetisCut& cut, int end, double next_bandwidth) const;

  // Nothing where cut() gives nothing for a stage, or a stage does not fit. Only devices, degrees,
  // layers and micro-batches count; the shares of the plan do not.
  std::optional<MetisTerms> cost(const Plan& plan) const;

  const Problem& problem() const { return problem_; }
  const MetisTable& table() const { return table_; }
  int layers() const { return problem_.model.unit_count(); }

 private:
  struct Sums {
    std::vector<double> times;
    std::vector<double> bytes;
  };

  const Sums* sums(int type, int tensor, int samples) const;
  bool divide_samples(std::span<const DeviceId> devices, MetisCut& cut, int micro_batch) const;

  const Problem& problem_;
  const MetisTable& table_;
  std::vector<std::map<std::pair<int, int>, Sums>> sums_;  // as the table's points
  std::vector<double> parameters_;                         // of the first 0, 1, .. layers
  std::vector<double> bandwidth_;                          // by device type
};

}  // namespace plait
