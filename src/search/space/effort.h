#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace plait {

// How much work `auto` may spend. Each does all that the one before it does and goes on from there,
// so that more effort never gives a worse plan.
//   quick     regular pipelines, a beam, and a short walk over moves
//   normal    bounds and the searches that they guide, and a longer walk
//   thorough  the same again with eight times the work
//   prove     and again, with ever more of it, until the gap or the time limit is reached
enum class Effort { quick, normal, thorough, prove };

const std::vector<std::string_view>& effort_names();  // in the order of the enumerators
std::string_view name_of(Effort effort);
// Case does not matter; nothing when there is none of that name.
std::optional<Effort> effort_named(std::string_view name);

}  // namespace plait
