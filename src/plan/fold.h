#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

// Words joined by "+", what repeats written once: "none*9", "(none+full)*6", wherever that is
// shorter than to write it out.
std::string folded(const std::vector<std::string>& words);

// The text with everything written out; nothing when it is not well formed, or longer than `most`.
// What is between other separators ("," and "/") is left as it is.
std::optional<std::string> unfolded(std::string_view text, std::size_t most);

}  // namespace plait
