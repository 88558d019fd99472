#pragma once

namespace plait {

// Where a number came from, weakest last. Shown by `estimate`.
enum class Source { measured, interpolated, analytic };

}  // namespace plait
