#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/flags/command.h"
#include "cli/flags/field_flags.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/terminal.h"
#include "io/format/json_reader.h"

namespace plait {
namespace {

constexpr int kFailed = 1;  // for a reason of the program's own, not of the input

// Words that people try, and the verb that answers.
constexpr std::pair<std::string_view, std::string_view> kMeant[] = {
    {"fit", "plan"},           {"memory", "plan"},       {"search", "plan"},
    {"optimize", "plan"},      {"optimise", "plan"},     {"tune", "plan"},
    {"predict", "plan"},       {"cost", "pareto"},       {"price", "pareto"},
    {"budget", "pareto"},      {"why", "explain"},       {"simulate", "estimate"},
    {"evaluate", "estimate"},  {"run", "train"},         {"launch", "export"},
    {"convert", "export"},     {"verify", "check"},      {"resume", "replan"},
    {"recover", "replan"},     {"benchmark", "profile"}, {"measure", "profile"},
    {"gpus", "devices"},       {"hardware", "devices"},  {"clouds", "instances"},
    {"programs", "frameworks"}};

const Verb& verb_named(const std::string& name) {
  std::vector<std::string_view> names;
  std::string_view wanted = name;
  for (const auto& [word, verb] : kMeant)
    if (word == name) wanted = verb;
  for (const Verb& verb : verbs()) {
    if (verb.name == name) return verb;
    if (verb.name == wanted)
      throw InputError(name,
                       fmt::format("is not a verb; plait {} will {}", verb.name, verb.summary));
    names.push_back(verb.name);
  }
  throw InputError(name, "is not a verb" + suggestion(name, names) + "; plait help lists them");
}

int run(std::vector<std::string> words) {
  if (words.empty()) {
    std::fputs(program_help().c_str(), stderr);
    return kWrongInput;
  }
  const std::string name = words.front();
  words.erase(words.begin());
  if (name == "--help" || name == "-h") {
    print(program_help());
    return kDone;
  }
  const Verb& verb = verb_named(name == "--version" || name == "-V" ? "version" : name);
  const Command command = verb.make();
  if (parse_flags(verb, command, words)) {
    print(verb_help(verb));
    return kDone;
  }
  return command.run();
}

// An exception where none can be caught: the library of JSON allocates when it frees a value. No
// memory may be taken here.
[[noreturn]] void end_at_once() noexcept {
  static constexpr char kText[] =
      "plait: out of memory: the problem is too large for this machine\n";
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    const auto ignored = write(STDERR_FILENO, kText, sizeof kText - 1);
    std::_Exit(ignored >= 0 ? kWrongInput : kFailed);
  } catch (...) {
  }
  std::abort();
}

}  // namespace
}  // namespace plait

int main(int argc, char** argv) {
  std::set_terminate(plait::end_at_once);
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is told as a full disk is
  try {
    std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    return plait::run(std::move(words));
  } catch (const plait::InputError& error) {
    plait::complain(plait::in_flags(error.what()));
    if (plait::Interrupt::ever_happened()) return plait::kInterrupted;
  } catch (const std::bad_alloc&) {
    plait::complain("out of memory: the problem is too large for this machine");
  } catch (const std::filesystem::filesystem_error& error) {
    const std::string path = error.path1().string();
    plait::complain((path.empty() ? "a file" : path) + ": " + error.code().message());
  } catch (const std::system_error& error) {
    plait::complain("the system refuses what is needed: " + error.code().message());
  } catch (const std::exception& error) {
    plait::complain(std::string("an unexpected error: ") + error.what());
    return plait::kFailed;
  }
  return plait::kWrongInput;
}
