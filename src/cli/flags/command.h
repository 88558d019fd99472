#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace plait {

// Exit statuses of the program, for scripts. Those of ranks are runtime::kRankFailed and
// runtime::kPeerLost; README.md and help.cpp list all of them.
inline constexpr int kDone = 0;
inline constexpr int kWrongInput = 2;
inline constexpr int kNothingFits = 3;
inline constexpr int kInterrupted =
    130;  // by Ctrl-C or a batch system, before there was anything to show

// Takes the text after a flag; `flag` is how the user spelled it, for messages. Throws InputError.
using Setter = std::function<void(const std::string& flag, const std::string& text)>;

struct Flag {
  std::string name;                    // "--tp"; "PLAN" for an argument without dashes
  std::string value;                   // what stands for the value in the help: "N"; "" = a switch
  std::string help;                    // one sentence
  Setter set;                          // a switch gets ""
  std::vector<std::string> hidden{};   // other spellings, understood but not shown
  std::string letter{};                // "-o"
  std::vector<std::string> choices{};  // offered by shell completion
  bool required = false;
  bool repeats = false;               // may be given several times
  std::vector<std::string> unless{};  // flags that make this one needless, where it is required
  bool early = false;  // set before the others, wherever it stands, so that they win over it
  // Words that may follow the value, after a blank: 4M tokens, 10 days.
  std::vector<std::string> units{};
};

struct FlagGroup {
  std::string title;  // "" = understood, but not shown
  std::vector<Flag> flags;
};

// A verb of the program, ready to be parsed: its flags write where `run` reads.
struct Command {
  std::vector<FlagGroup> groups;
  std::function<int()> run;  // gives the exit code; throws InputError
};

struct Verb {
  std::string_view name;
  std::string_view summary;
  std::string_view examples;  // lines "plait plan ...    # what it does"
  Command (*make)();
};

// The one table of verbs, in verbs.cpp. To add one: write a file, add a row.
std::span<const Verb> verbs();

// Reads the words after the verb into the command's flags; InputError for what it does not know.
// '_' in a flag stands for '-', as in Python's arguments. True when help is asked for instead. The
// only use of the library that parses command lines.
bool parse_flags(const Verb& verb, const Command& command, std::vector<std::string> words);

// What --help prints.
std::string program_help();
std::string verb_help(const Verb& verb);

// The longest sequence that flags may ask for.
inline constexpr int kMaxSequence = 1 << 24;

// Setters for the usual kinds of value.
Setter into_text(std::string& into);
Setter into_one_of(std::string& into, std::vector<std::string> names);
Setter into_integer(int& into, int least, int most);
Setter into_integer(std::optional<int>& into, int least, int most);
Setter into_fraction(double& into);            // from 0 to 1
Setter into_gap(std::optional<double>& into);  // "2%", or 0.02
Setter into_switch(bool& into);
Setter into_list(std::vector<int>& into, int least, int most);  // "13,12,12,13"

// "128k" tokens of a sequence are 131,072, "1M" are 1,048,576.
Setter into_tokens(std::optional<int>& into, int least, int most);
// "12000MB", "70GiB": a size above 0, always with its unit. MB is 1e6, MiB is 2^20.
Setter into_size(std::optional<Bytes>& into);
double parse_size(const std::string& flag, const std::string& text);  // in bytes

// The argument of the verbs that take a saved plan.
Flag plan_file_flag(std::string& into);

// "10s", "500ms", "2m", "1h" or plain seconds.
double parse_seconds(const std::string& flag, const std::string& text);

// One of the names of an enumeration (plan/names.h).
template <typename Into, typename Named>
Setter into_choice(Into& into, const Named& named, const std::vector<std::string_view>& names);
[[noreturn]] void refuse_choice(const std::string& flag, const std::string& text,
                                const std::vector<std::string_view>& names);
std::vector<std::string> as_strings(const std::vector<std::string_view>& names);

template <typename Into, typename Named>
Setter into_choice(Into& into, const Named& named, const std::vector<std::string_view>& names) {
  return [&into, named, &names](const std::string& flag, const std::string& text) {
    const auto value = named(text);
    if (!value) refuse_choice(flag, text, names);
    into = *value;
  };
}

}  // namespace plait
