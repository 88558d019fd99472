#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plait {

// Text of a file or of a command line, such as a name, made safe to show on one line: what could
// move the cursor, colour the terminal, end the line or reverse the text is shown as an escape
// (\n, \x1b, \u202e), and so are bytes that are not UTF-8. Of a text that is longer than `most`
// characters the first are shown, and how many there are.
inline constexpr std::size_t kShownCharacters = 200;
std::string printable(std::string_view text, std::size_t most = kShownCharacters);

// The same for text of several lines and with colours of our own (ESC [ digits m), which stay;
// nothing is cut. In JSON such an escape stands for the same character.
std::string printable_lines(std::string_view text);

// Whether all of it is UTF-8: what is not cannot be written to a JSON file and read again.
bool is_utf8(std::string_view text);

}  // namespace plait
