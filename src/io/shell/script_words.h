#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

// Variables of a script, arrays among them: a scalar has one value.
struct ScriptVariables {
  std::map<std::string, std::vector<std::string>> values{};
  std::vector<std::string> arguments{};  // $1 ..
  bool arguments_known = false;          // those of a function; of the script itself nobody knows
};

// The words that a word of a script becomes, quotes removed and variables filled in. What is not
// known stays as it is: "$TP" where nothing sets TP, "$(nproc ...)" for what a command would say.
// ${TP:=8} sets TP.
std::vector<std::string> expand_words(const std::string& raw, ScriptVariables& variables);
// The same as one text, as in an assignment; `quoted` = as inside double quotes.
std::string expand_text(const std::string& raw, ScriptVariables& variables, bool quoted = false);

// What (( .. )) comes to; nothing where that is not known. Sets the variable of X=, X+=, X++.
std::optional<long long> arithmetic(const std::string& text, ScriptVariables& variables);

// "NAME" of "NAME=..", "NAME+=.." and "NAME[2]=.."; "" where the word is no assignment.
std::string_view assigned_name(std::string_view word);
// Does what such a word says, and gives the value.
const std::string& assign(const std::string& word, ScriptVariables& variables);

// Whether expand_text() left something that is not known in it.
bool has_unknown(std::string_view text);

}  // namespace plait
