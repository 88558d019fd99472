#pragma once

#include "app/saved/export.h"
#include "cli/flags/command.h"

namespace plait {

// --to, --output, --launcher ..: what a plan is written for, and where to.
FlagGroup export_flags(ExportRequest& request);

}  // namespace plait
