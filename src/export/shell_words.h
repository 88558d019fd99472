#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plait {

// The word as bash reads it back, whatever is in it: train.py, 'two words', 'it'\''s'.
std::string shell_word(std::string_view word);

// The same inside of an array, where a bare comma reads as if it parted two elements: '0,1'.
std::string array_word(std::string_view word);

// A flag with its values: {"--num-layers", {"32"}}.
struct FlagWords {
  std::string flag;
  std::vector<std::string> values{};
  friend bool operator==(const FlagWords&, const FlagWords&) = default;
};

// NAME=( with a flag and its values in each line, and the closing parenthesis.
std::string shell_array(std::string_view name, const std::vector<FlagWords>& flags);

// Text in a comment of a script: no line of it is outside of the comment.
std::string shell_comment(std::string_view text);

}  // namespace plait
