#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cli/flags/command.h"

namespace plait {

// What a keyword argument was given: yes or no, a text, or several of them. Numbers come as texts,
// so that one setter reads what is typed and what is passed.
using KeywordValue = std::variant<bool, std::string, std::vector<std::string>>;
using Keywords = std::vector<std::pair<std::string, KeywordValue>>;

// Sets the flags of a command by keywords: `global_batch` and `global_batch_size` are
// --global-batch, `tensor_model_parallel_size` is --tp. False is the switch that says so
// (`sp=False` is --no-sp), else as if nothing had been given. A list is given one by one to a flag
// that repeats, else joined by commas. InputError for unknown names (with the nearest), names given
// twice, and what setters refuse.
void set_keywords(const std::vector<FlagGroup>& groups, const Keywords& keywords);

// A flag as a keyword: "--global-batch" is "global_batch".
std::string keyword_of(std::string_view flag);

// A text of the layers below with keywords in place of fields (cli/flags/field_flags.h) and of
// flags.
std::string in_keywords(std::string_view text);

// What a keyword is called, its other names, and what it means; for documents and type stubs.
struct KeywordEntry {
  std::string name;
  std::vector<std::string> aliases;
  std::string value;  // as in Flag; "" = True or False
  std::string help;
  bool repeats = false;
};
std::vector<KeywordEntry> keyword_entries(const std::vector<FlagGroup>& groups);

}  // namespace plait
