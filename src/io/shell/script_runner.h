#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/shell/script_tests.h"
#include "io/shell/script_words.h"
#include "io/shell/shell_script.h"
#include "io/shell/token_cursor.h"

namespace plait {

inline constexpr std::size_t kMostScriptWarnings = 5;
inline constexpr int kMostScriptNesting = 40;  // compound commands, functions and included files

// Follows a script: compound commands in shell_script.cpp, simple ones in simple_commands.cpp. What
// is not `live` is read, not followed.
class ScriptRunner : TokenCursor {
 public:
  ScriptRunner(const IncludedFile& included, ScriptCommands& out)
      : included_(included), out_(out) {}

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
  // How often a loop runs that waits for something is not known: it is read, not followed.
  ScriptStatus turns();
  ScriptStatus function(std::string name, bool keyword);

  ScriptStatus simple(bool live);
  ScriptStatus start(std::vector<std::string> words, const std::vector<const Token*>& documents,
                     int line);
  ScriptStatus follow(const std::vector<std::string>& words,
                      const std::vector<const Token*>& documents, int line);
  ScriptStatus take(const std::vector<std::string>& words,
                    const std::vector<const Token*>& documents);
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
};

}  // namespace plait
