#pragma once

#include <string>
#include <vector>

#include "app/request/session.h"
#include "base/units.h"
#include "report/table.h"
#include "validation/calibration.h"

namespace plait {

// Fit constants of one's own cluster to runs that were measured on it.
struct CalibrateRequest {
  std::string runs;                    // a table of them, as `plait validate` reads it
  std::vector<std::string> catalogue;  // that the constants are factors on
  std::string profile;                 // measurements, for the rows that they cover
  int threads = 1;
  Seconds time_limit{60};
};

struct CalibrateAnswer {
  std::string runs;                  // as requested
  int rows = 0;                      // with a measured time and a prediction
  std::vector<std::string> refused;  // other rows, "row 3: gbs is not stated"
  std::vector<OwnConstant> constants;
  Calibration calibration;
  bool interrupted = false;  // stopped on request: constants that help may be missing
  std::string catalogue;     // a file for `catalogue` of other requests; "" where nothing changed
};

// RequestError where fewer than two rows can be predicted.
CalibrateAnswer answer(const CalibrateRequest& request, const Session& session = {});

// Why there is nothing to write; "" when there is.
std::string reason(const CalibrateAnswer& answer);
std::string to_json(const CalibrateAnswer& answer);
std::string as_text(const CalibrateAnswer& answer, const Style& style);

}  // namespace plait
