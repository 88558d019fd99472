#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plait {

// What a column counts, which decides the units that its cells may have.
enum class CellKind {
  count,    // 8
  tokens,   // 4096; "4k" is 4 x 1024
  seconds,  // 9.5; "9500 ms", "1.2 min"
  gib,      // 71; "73,400 MiB"
  billion,  // of parameters: 7; "350M", "7B"; 100,000 and more are single ones
  rate,     // a second: 5200; "5.2k"
  batch,    // of tokens: 500000; "0.5M" is half of 1024 x 1024, as in --global-batch
  percent,  // 45; "45 %"
};

// The number that a cell says, in the unit above: thousands may be apart ("1,024"), about is about
// ("~5"), a deviation ("9.5±0.2") or a remark ("250000 (approx)") may follow. Nothing where the
// cell says anything else: "1,5", "4x8", "9-10", "12 apples".
std::optional<double> read_cell(std::string_view text, CellKind kind);

// Whether cells of the kind may have the unit: "ms", of seconds.
bool is_unit(std::string_view unit, CellKind kind);

}  // namespace plait
