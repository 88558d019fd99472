#include "cli/verbs/console_session.h"

#include "cli/flags/field_flags.h"
#include "cli/terminal/terminal.h"

namespace plait {

ConsoleSession::ConsoleSession(Warnings warnings) {
  session_.stop = interrupt_.token();
  session_.on_improvement = [this](Seconds step) { progress_.improved(step); };
  session_.on_progress = [this](double fraction) { progress_.advanced(fraction); };
  if (warnings == Warnings::shown)
    session_.on_warning = [](const std::string& text) { warn(in_flags(text)); };
}

void say_in_flags(std::vector<std::string>& sentences) {
  for (std::string& sentence : sentences) sentence = in_flags(sentence);
}

}  // namespace plait
