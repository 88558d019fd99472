#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

// Variables of a script, arrays among them: a scalar has one value.
struct ScriptVariables {
  std::map<std::string, std::vector<std::string>> values{};
  std::map<std::string, std::map<std::string, std::string>> tables{};  // declare -A
  std::string script{};                                                // $0; "": not known
  std::vector<std::string> arguments{};                                // $1 ..
  bool arguments_known = false;  // those of a function; of the script itself nobody knows
  // What the commands of $( .. ) print; nothing where only a run tells.
  std::function<std::optional<std::string>(const std::string&)> printed_by{};
};

// The words that a word of a script becomes, quotes removed and variables filled in. What is not
// known stays as it is: "$TP" where nothing sets TP, "$(nproc ...)" for what a command would say.
// ${TP:=8} sets TP.
std::vector<std::string> expand_words(const std::string& raw, ScriptVariables& variables);
// The same as one text, as in an assignment; `quoted` = as inside double quotes.
std::string expand_text(const std::string& raw, ScriptVariables& variables, bool quoted = false);

// What (( .. )) comes to; nothing where that is not known. Sets the variable of X=, X+=, X++.
std::optional<long long> arithmetic(const std::string& text, ScriptVariables& variables);

// The same of a word whose variables are filled in already.
std::optional<long long> value_of_word(const std::string& word, ScriptVariables& variables);

// "NAME" of "NAME=..", "NAME+=.." and "NAME[2]=.."; "" where the word is no assignment.
std::string_view assigned_name(std::string_view word);
// Does what such a word says, and gives the value.
const std::string& assign_element(const std::string& name, const std::string& index,
                                  std::string value, bool adds, ScriptVariables& variables);
const std::string& assign(const std::string& word, ScriptVariables& variables);

// The value after one of ${X%pattern}, ${X##..}, ${X/a/b}, ${X^^}, ${X:0:2}, of which `operation`
// is what follows the name; nothing where it is not one of them.
std::optional<std::string> changed_value(const std::string& value, const std::string& operation,
                                         ScriptVariables& variables);

// Whether expand_text() left something that is not known in it.
bool has_unknown(std::string_view text);

}  // namespace plait
