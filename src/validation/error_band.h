#pragma once

#include <string>
#include <vector>

#include "io/format/json_reader.h"
#include "validation/run_kind.h"

namespace plait {

// How far off predictions are, by the kind of run: data/catalogue/errors.json, which
// scripts/error_bands makes from rows whose source no constant has seen. Errors are sizes of
// log(measured / predicted).

// A property of a run multiplies the size of its error.
struct ErrorFactor {
  // One of kRunProperties, or "new_device", "new_framework": no row has that one.
  std::string property;
  double factor = 1;
  int sources = 0;  // that have it; 0: nothing was measured and the factor is set
};

struct ErrorScale {
  double half = 0;         // size that half of the errors of a plain run are within
  double nine_tenths = 0;  // and nine in ten
  double above = 0;        // by which one in ten exceeds its prediction
  std::vector<ErrorFactor> factors;
};

// Of pairs of measured plans of one job that are predicted to be `apart`, the share that was
// measured in the predicted order.
struct OrderPoint {
  double apart = 0;  // log of the ratio of the predictions
  double right = 0.5;
  int pairs = 0;
};

struct ErrorTable {
  ErrorScale time;
  ErrorScale memory;
  std::vector<OrderPoint> order;  // both ascend
  std::vector<std::string> devices;
  std::vector<std::string> frameworks;
};

ErrorTable read_error_table(const JsonValue& document);
const ErrorTable& builtin_error_table();

// What predictions are to be multiplied by: half of the runs of the kind are from `low` to `high`,
// nine in ten from `lowest` to `highest`.
struct ErrorBand {
  double low = 1;
  double high = 1;
  double lowest = 1;
  double highest = 1;
  double above = 1;                  // one in ten is above this
  std::vector<std::string> because;  // what makes it wider than that of a plain run, in words
  // The error that half of such runs are within.
  double typical() const { return high - 1; }
};

ErrorBand time_band(const ErrorTable& table, const RunKind& kind);
ErrorBand memory_band(const ErrorTable& table, const RunKind& kind);

// How likely the plan that is predicted to take `ratio` times as long does take longer: 1/2 for
// equal ones.
double chance_of_order(const ErrorTable& table, double ratio);

// Below this chance a difference is within the error.
inline constexpr double kSureOrder = 0.75;

}  // namespace plait
