#pragma once

#include <string>
#include <string_view>

#include "io/format/csv.h"

namespace plait {

// A table as it is copied from a page: fields apart by commas, or, where the first line has none,
// by tabs or semicolons; or a Markdown table. InputError as parse_csv() has it.
CsvTable parse_table(const std::string& name, std::string_view text);

}  // namespace plait
