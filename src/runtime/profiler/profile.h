#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/model.h"
#include "plan/problem.h"
#include "profile/profile.h"

namespace plait::runtime {

// How long something took, over repeats.
struct Timing {
  Seconds median;
  double spread = 0;  // half the 95 % confidence interval of the median, relative to it
  int repeats = 0;
  friend bool operator==(const Timing&, const Timing&) = default;
};

// Median, interval and number of `seconds`, which is not empty.
Timing timing_of(std::vector<double> seconds);
// Whether more than a twentieth of them lie far off: over 5 median absolute deviations, and 5 %.
bool has_outliers(std::vector<double> seconds);
// By how much the second half of the repeats is slower than the first: the clock has changed.
double drift_of(const std::vector<double>& seconds);
// "measured once", "outliers", and "slowed down by 4 %" where the drift is over 3 % either way;
// each once.
void add_flags(const std::vector<double>& seconds, std::vector<std::string>& flags);

// What was found out about one point; what is absent was not measured.
struct Measurement {
  std::optional<Timing> forward;
  std::optional<Timing> backward;         // of an op its input gradients, of a unit all gradients
  std::optional<Timing> weight_gradient;  // of an op
  std::optional<Timing> optimizer;
  std::optional<Timing> forward_launch;  // by the host, of a unit
  std::optional<Timing> backward_launch;
  std::optional<Bytes> saved;
  std::optional<Bytes> input;
  std::optional<Bytes> workspace;
  std::optional<Bytes> reserved;
  bool out_of_memory = false;
  std::vector<std::string> flags;
  friend bool operator==(const Measurement&, const Measurement&) = default;
};

// A unit of a model on one device of a tensor group.
struct UnitPlace {
  const Model* model = nullptr;
  int unit = 0;  // the first of its kind
  int tensor = 1;
  int micro_batch = 1;
};

// One thing to measure.
struct ProfilePoint {
  std::optional<UnitPlace> unit;  // else an op
  OpKey op;
  std::string text;        // all that decides its result, the machine apart
  std::string group;       // points of one group tell about each other
  std::vector<double> at;  // where in its group: powers of two
  double weight = 1;       // flops that it stands for
};

struct PointRequest {
  std::vector<Model> models;  // the same model with each length of its samples
  Job job;
  std::vector<int> tensors{1};
  std::vector<int> micro_batches{1};
  bool units = true;
  bool ops = true;
};

// Each distinct unit and op once, at the shard shapes of every tensor degree and with every
// micro-batch. Degrees that do not divide an op's sizes are left out, with a sentence in `notes`.
// The models must outlive the points.
std::vector<ProfilePoint> points_of(const PointRequest& request, std::vector<std::string>& notes);
// Ops of a list: {"plait_ops": 1, "ops": [{"op": "matmul", "dtype": "bf16", "rows": [1024, 4096],
// "inner": 768, "columns": 3072}]}. A size that is a list stands for each of its values.
std::vector<ProfilePoint> points_of_list(const std::string& path);

// The most informative first: again and again the point for which sqrt(weight) times the distance
// to the nearest point before it, in its group, is largest (at most 4, as far as the first one).
void order_by_information(std::vector<ProfilePoint>& points);

// The machine as measurements depend on it.
struct Machine {
  std::string device_type;                      // the catalogue's name where it has one, else "CPU"
  std::map<std::string, std::string> versions;  // device, driver, libtorch, threads
  std::string text() const;                     // all of it on one line
};

struct MeterOptions {
  std::string device = "cpu";  // or "cuda"
  std::string device_type;     // "" = as the machine says
  Job job;
  double tight = 0.01;   // stop when Timing::spread is this small
  Seconds longest{0.4};  // or a pass was repeated for this long
  int fewest = 5;        // repeats
  // Units are repeated for so long before anything counts, and then for at least as long: a GPU
  // keeps its power limit in the mean of a second, and its clock falls and rises by that.
  std::optional<Seconds> settle;  // nothing = a second on GPUs, none on the CPU
};

// Measures on one device. Every call takes some tenths of a second.
class Meter {
 public:
  virtual ~Meter() = default;
  virtual const Machine& machine() const = 0;
  virtual Measurement unit(const UnitPlace& place) = 0;
  virtual Measurement op(const OpKey& key) = 0;
};

// Results that were measured before, in an append-only file of one line each, so that a run that is
// killed loses at most the point being measured. Several runs may append to one file.
class PointCache {
 public:
  // "" keeps nothing. A line that is cut off is ignored; InputError for a file of another kind.
  explicit PointCache(const std::string& path, bool reads = true);
  const Measurement* find(const std::string& fingerprint) const;
  void append(const std::string& fingerprint, const std::string& text, const Measurement& result);
  std::size_t size() const { return known_.size(); }

 private:
  std::string path_;
  std::map<std::string, Measurement> known_;
};

// Where a user's results lie when nothing is said: $XDG_CACHE_HOME/plait/points.jsonl or in
// ~/.cache; "" where there is no home.
std::string usual_cache();

std::string fingerprint_of(const ProfilePoint& point, const Machine& machine, int round);

// What rounds of measuring one point say together: the median of their medians. The spread is that
// of a round, or half the range of the medians where that is larger.
Measurement combined(const std::vector<Measurement>& rounds);

struct MeasureRun {
  PointCache& cache;
  int rounds = 1;     // all points are measured, then all of them again
  Seconds budget{0};  // 0 = none
  std::stop_token stop;
  std::function<void(double fraction, Seconds left)> progress;
};

struct MeasureOutcome {
  std::vector<std::optional<Measurement>> results;  // by point; nothing = budget or stop came first
  int from_cache = 0;                               // wholly
  int measured = 0;
  int left_out = 0;
};

MeasureOutcome measure_points(const std::vector<ProfilePoint>& points, Meter& meter,
                              const MeasureRun& run);

// The profile of what was measured. `job` is the one that the points were made for.
Profile profile_of(const std::vector<ProfilePoint>& points, const MeasureOutcome& outcome,
                   const Machine& machine);

// Everything of both; where both have a point, the one of `b`.
Profile merged(Profile a, const Profile& b);

// How two profiles differ, one line a quantity that both have: "decoder tp 1 mbs 4 forward".
struct ProfileDifference {
  std::string what;
  double a = 0;
  double b = 0;
  // 0 where they differ by less than device events can tell.
  double relative() const;
};
struct ProfileComparison {
  std::vector<ProfileDifference> both;
  int only_a = 0;
  int only_b = 0;
  double median() const;   // of |relative|
  double largest() const;  // of |relative|
};
ProfileComparison compare_profiles(const Profile& a, const Profile& b);

}  // namespace plait::runtime
