#pragma once

#include <string>
#include <vector>

#include "io/shell/script_words.h"

namespace plait {

// What a command or a condition gives: known, or not. `ran` = a command of another program, which
// is taken to succeed in `a && b` and is not known in `if`.
enum class ScriptStatus { yes, no, ran, unknown };

// [ .. ] and test, of words that are filled in, without the brackets.
ScriptStatus status_of_test(const std::vector<std::string>& words);
// [[ .. ]], of words as they are written.
ScriptStatus status_of_condition(const std::vector<std::string>& items, ScriptVariables& variables);

// Whether the text is one of what a pattern with * and ? stands for; quotes make them plain.
bool matches_pattern(const std::string& pattern, const std::string& text,
                     ScriptVariables& variables);

}  // namespace plait
