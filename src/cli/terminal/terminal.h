#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "report/table.h"

namespace plait {

// How to lay out what goes to stdout or stderr: coloured on a terminal unless NO_COLOR is set or
// TERM is "dumb", and as wide as COLUMNS or the terminal says (40 to 160; 100 elsewhere). Only on a
// terminal are columns of tables left out to fit; files and pipes get them all.
Style style_of(std::FILE* stream);
bool is_terminal(std::FILE* stream);

// Prints a result. InputError when stdout cannot take it (a full disk); a closed pipe ends the
// program as it does any other.
void print(std::string_view text);

// Lines of a run that is worth more than what it prints: what stdout cannot take is left out, the
// run goes on, and check_lines() gives print()'s InputError at its end.
void print_line(std::string_view line);
void check_lines();

// Tells the user something besides the result, on stderr: "plait: warning: ..." and "plait: ...".
void warn(const std::string& text);
void complain(const std::string& text);

// A line that a rank of a launched run printed, on the same stream; lines of ranks other than 0 say
// which rank it was.
void pass_on_line(int rank, bool error_stream, const std::string& line);

}  // namespace plait
