#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/cluster/catalogue.h"
#include "validation/measured_run.h"

namespace plait {

struct RunReading {
  Catalogue catalogue = builtin_catalogue();
  bool literal = false;  // take every column as it stands, without validation/run_corrections.h
  // Measurements (what `--profile` takes) for the rows whose model and device they cover; the
  // others are predicted without. "" = none.
  std::string profile;
};

// Reads a table of published runs (validation/run_row.h says which) into problems and plans that
// can be predicted. Every row gives one run, in the order of the file; a row that does not say
// enough, or whose figures contradict each other, is refused with the reason. InputError only when
// the text is not a table of runs at all.
std::vector<MeasuredRun> read_published_runs(const std::string& name, std::string_view text,
                                             const RunReading& reading = {});

// Columns of such a table that play no part in it.
std::vector<std::string> unread_columns(const std::string& name, std::string_view text);

// The small table that is compiled in (data/validation/published_runs.csv).
std::vector<MeasuredRun> shipped_runs(const RunReading& reading = {});

}  // namespace plait
