#pragma once

#include <string>

#include "io/cluster/catalogue.h"

namespace plait {

// The constants of the analytic model as scripts/calibrate exchanges them:
//   {"devices": {"A100-80GB": {"matmul": 0.736, ..}}, "frameworks": {"fsdp": {"traffic": 1.1, ..}}}
// Devices as in the catalogue's "efficiency", frameworks as in its "traits"; what is absent stays.
void apply_constants(const std::string& path, Catalogue& catalogue);

// Entries of a catalogue that change a known device or framework: its constants as they are now.
std::string fitted_device_json(const DeviceEntry& entry, const std::string& note);
std::string fitted_framework_json(const Framework& framework);

// All constants that apply now.
std::string constants_json(const Catalogue& catalogue);

}  // namespace plait
