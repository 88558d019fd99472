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

// The same for what stages say, joined by ",": "3/2,[2/2]*14,1/2". A run of equal stages is folded
// where that takes at most half of the room: "10,10,10" is easier to read than "[10]*3".
std::string folded_stages(const std::vector<std::string>& stages);
std::optional<std::string> unfolded_stages(std::string_view text, std::size_t most);

}  // namespace plait
