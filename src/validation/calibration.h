#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/cluster/catalogue.h"
#include "validation/measured_run.h"

namespace plait {

// Fits few constants of one's own cluster to a handful of runs: factors on what the catalogue says.

enum class ConstantKind {
  compute,  // of a device: share of its peak in products and attention
  memory,   // of a device: share of its memory's bandwidth
  intra,    // of a device: share of the links of a node
  inter,    // of a device: share of the network
  host,     // of a framework: all times of launching
};

struct OwnConstant {
  ConstantKind kind = ConstantKind::compute;
  std::string owner;  // device type or framework, the catalogue's name
  friend bool operator==(const OwnConstant&, const OwnConstant&) = default;
};
std::string in_words(const OwnConstant& constant);  // "H100: share of peak in products"

// What the runs with a measured time can tell, by the devices and frameworks that they have.
std::vector<OwnConstant> own_constants(const std::vector<MeasuredRun>& runs);

// Multiplies the constant; shares stay at 1 and below.
void scale(const OwnConstant& constant, double factor, Catalogue& catalogue);

// Signed errors, log(predicted / measured), of the runs when each constant has its factor.
using ErrorsAt = std::function<std::vector<double>(const std::vector<double>& factors)>;

// What came of a constant when it was added to those that were kept before it.
struct ConstantTrial {
  int constant = 0;     // position
  double left_out = 0;  // mean size of the errors, each run without having been seen
  bool kept = false;
};

struct Calibration {
  std::vector<double> factors;  // one for each constant; 1 = not kept
  std::vector<ConstantTrial> trials;
  double before = 0;       // mean size of the errors with the catalogue as it is
  double left_out = 0;     // with factors that were found without the run
  double in_sample = 0;    // with factors that were found on all runs
  bool cut_short = false;  // constants that help may be missing
  bool changed() const;
};

// Adds the constant that lowers the left-out error most, again and again, as long as one lowers it
// by kLeastGain. Runs are left out one by one, or in ten parts where there are many. Where `stop`
// says so, what was found until then stays.
inline constexpr double kLeastGain = 0.05;
// Factors from 1 / kMostFactor to kMostFactor are tried.
inline constexpr double kMostFactor = 2;
Calibration calibrate(
    int constants, const ErrorsAt& errors_at,
    const std::function<bool()>& stop = [] { return false; });

}  // namespace plait
