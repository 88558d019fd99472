#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "search/space/pins.h"

namespace plait {

// A request is wrong: one of its fields contradicts another, or what it names. Texts of this layer
// name fields between backquotes; a front end may put its users' names for them in their place:
//   "`deadline`: needs to know how long the training is: give `tokens` or `steps`"
class RequestError : public InputError {
 public:
  RequestError(std::string_view field, const std::string& what);
  explicit RequestError(const PinViolation& violation);
};

// RequestError when `text` is not one of the names; it suggests the nearest.
void refuse_unknown(std::string_view field, const std::string& text,
                    const std::vector<std::string_view>& names);
// The words of it: "must be one of auto, amp, is 'autp' (did you mean 'auto'?)".
std::string not_one_of(const std::string& text, const std::vector<std::string_view>& names);

}  // namespace plait
