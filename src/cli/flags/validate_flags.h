#pragma once

#include "app/measured/validate.h"
#include "cli/flags/command.h"

namespace plait {

// --runs, --by, --grade ..: what predictions are compared with, and which rows of it.
FlagGroup validate_flags(ValidateRequest& request);

}  // namespace plait
