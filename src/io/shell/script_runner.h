#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/shell/script_tests.h"
#include "io/shell/script_words.h"
#include "io/shell/shell_script.h"
#include "io/shell/token_cursor.h"

namespace plait {

inline constexpr std::size_t kMostScriptWarnings = 5;
inline constexpr int kMostScriptNesting = 40;  // compound commands, functions and included files

// Follows a script: compound commands in shell_script.cpp, simple ones in simple_commands.cpp, what
// they read and print in script_streams.cpp. What is not `live` is read, not followed.
class ScriptRunner : TokenCursor {
 public:
  ScriptRunner(const IncludedFile& included, ScriptCommands& out, const std::string& path);

  // A text of its own: that of a script, a function's file or an eval.
  void run_text(const std::string& text);

 private:
  enum class Leaving { no, next_turn, loop, function, script };

  ScriptStatus list(bool live);
  ScriptStatus chain(bool live);  // a && b || c
  ScriptStatus pipeline(bool live);
  ScriptStatus command(bool live);
  ScriptStatus any_command(bool live);

  ScriptStatus condition(const Token& test, bool live);
  ScriptStatus sum(const Token& text, bool live);
  ScriptStatus group(bool live, const char* close);
  // A condition that is not known counts as false; that is said where it could matter.
  void note_unknown(const Token& where);
  void warn_of_branch(std::size_t begin);
  ScriptStatus branches(bool live);
  ScriptStatus cases(bool live);
  ScriptStatus each(bool live);
  ScriptStatus counted(bool live);  // for ((..; ..; ..))
  // While the condition is known to be so; how often a loop runs that waits for something is not.
  ScriptStatus turns(bool live, ScriptStatus goes_on);
  void turn(std::size_t body);
  ScriptStatus function(std::string name, bool keyword);

  ScriptStatus simple(bool live);
  ScriptStatus start(std::vector<std::string> words, const std::vector<const Token*>& documents,
                     int line);
  ScriptStatus follow(const std::vector<std::string>& words,
                      const std::vector<const Token*>& documents, int line);
  ScriptStatus take(const std::vector<std::string>& words,
                    const std::vector<const Token*>& documents);
  // The shell's words that print; nothing where the word is none of them.
  std::optional<std::string> printed(const std::vector<std::string>& words);
  std::optional<std::string> printed_path(const std::vector<std::string>& words) const;
  std::optional<std::string> printed_by(const std::string& commands);
  bool pipe(bool live);  // `| bc` of what is known
  void change_folder(const std::vector<std::string>& words);
  void set_arguments(const std::vector<std::string>& words);
  std::string text_of(const Token& document);
  std::vector<std::string> lines_of(const Token& document);
  bool script_file(const std::vector<std::string>& words);
  ScriptStatus inside(const std::string& text);
  ScriptStatus include(const std::string& path, int line);
  ScriptStatus call(std::vector<std::string> words);
  void leave(const std::string& word);
  void assign_list(const Token& token);
  void append(std::vector<std::string>& to, std::vector<std::string> words);
  void count(const std::string& value);

  struct Function {
    Tokens tokens;
    std::size_t body;
  };

  struct Printed {
    std::string text;
    bool known = true;
  };

  const IncludedFile& included_;
  ScriptCommands& out_;
  ScriptVariables variables_;
  std::map<std::string, Function> functions_;
  int steps_ = 0;
  int depth_ = 0;
  std::size_t words_ = 0;
  std::size_t characters_ = 0;
  Leaving leaving_ = Leaving::no;
  std::string unknown_;
  std::vector<std::string> lines_;  // that a loop's `read` has not yet taken, the last first
  Printed* printed_ = nullptr;      // what $( .. ) gets
  std::string folder_;              // where the script has gone to; "": not known
  std::map<std::string, std::string> written_;  // scripts that it writes, by path
};

// The words of a list, {1..4} among them.
std::vector<std::string> in_braces(const std::string& raw, ScriptVariables& variables);

}  // namespace plait
