#include <fmt/format.h>

#include <memory>

#include "app/profile/links.h"
#include "app/profile/measure.h"
#include "app/profile/profile_files.h"
#include "app/request/output_file.h"
#include "base/error.h"
#include "base/printable.h"
#include "cli/flags/command.h"
#include "cli/flags/profile_arguments.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "io/format/text_file.h"
#include "runtime/backend.h"
#include "runtime/launch/rank.h"

namespace plait {
namespace {

// The command as it was typed, for the profile to tell.
std::string typed() {
  std::string text = "plait";
  const std::vector<std::string> words = runtime::command_line();
  for (std::size_t i = 1; i < words.size(); ++i) text += " " + words[i];
  return text;
}

void save(const std::string& profile, const std::string& output, const std::string& summary) {
  if (output.empty()) {
    print(profile);
    return;
  }
  write_text_file(output, profile);
  print(fmt::format("{}: {}\n", printable(output), summary));
}

void save(const ConvertProfileAnswer& converted, const std::string& output) {
  write_files(converted.files, output);
  print(fmt::format("{}: {}\n", printable(output), as_text(converted)));
}

std::vector<std::string> files_of(const ProfileArguments& arguments) {
  return {arguments.words.begin() + 1, arguments.words.end()};
}

int merge(const ProfileArguments& arguments) {
  const MergeProfilesAnswer all = answer(MergeProfilesRequest{files_of(arguments)});
  save(to_json(all), arguments.output, as_text(all));
  return kDone;
}

int diff(const ProfileArguments& arguments) {
  const DiffProfilesAnswer both = answer(DiffProfilesRequest{files_of(arguments)});
  print(arguments.json ? to_json(both) : as_text(both, style_of(stdout)));
  return kDone;
}

int convert(const ProfileArguments& arguments) {
  const MeasureRequest& given = arguments.measure;
  if (arguments.words.size() != 2 || given.format == "native" || given.model.empty() ||
      arguments.output.empty())
    throw InputError("plait profile export",
                     "needs a profile file, --model M, --format metis or aceso, and -o DIRECTORY");
  ConvertProfileRequest request{.path = arguments.words[1],
                                .format = given.format,
                                .model = given.model,
                                .sequence = {},
                                .job = given.meter.job};
  if (!given.sequences.empty()) request.sequence = given.sequences.front();
  save(answer(request), arguments.output);
  return kDone;
}

int measure_links(const ProfileArguments& arguments) {
  if (!arguments.output.empty()) check_output(arguments.output);
  LinksRequest request{.local = arguments.local.value_or(0),
                       .threads = arguments.threads,
                       .sizes = arguments.sizes,
                       .meter = arguments.measure.meter,
                       .command = typed(),
                       .rank_command = runtime::command_line()};
  request.rank_command[0] = runtime::program_file();
  // A rank that a launcher started ends by a signal, as any program does.
  std::optional<Interrupt> interrupt;
  if (!runtime::rank_place(runtime::environment_variables())) interrupt.emplace();
  LinksSession session{.stop = interrupt ? interrupt->token() : std::stop_token(),
                       .tell = complain,
                       .on_rank_line = pass_on_line};
  const LinksAnswer links = answer(request, session);
  if (links.measured) save(to_json(links), arguments.output, as_text(links));
  return links.interrupted ? kInterrupted : kDone;
}

int measure(const ProfileArguments& arguments) {
  MeasureRequest request = arguments.measure;
  request.command = typed();
  const bool native = request.format == "native";
  if (!native && (arguments.output.empty() || request.model.empty()))
    throw InputError("--format", "needs --model M and -o DIRECTORY");
  if (native && !arguments.output.empty()) check_output(arguments.output);
  const Interrupt interrupt;
  MeasureAnswer measured;
  {
    Progress progress;
    measured =
        answer(request, {.stop = interrupt.token(), .progress = [&](double fraction, Seconds left) {
                           progress.expected(left);
                           progress.advanced(fraction);
                         }});
  }
  for (const std::string& warning : measured.warnings) warn(warning);
  if (measured.converted) {
    save(*measured.converted, arguments.output);
  } else {
    save(to_json(measured), arguments.output, as_text(measured));
  }
  return measured.interrupted ? kInterrupted : kDone;
}

void check_flags(const ProfileArguments& arguments) {
  const MeasureRequest& given = arguments.measure;
  if (arguments.comm && !(given.model.empty() && given.ops.empty()))
    throw InputError("--comm",
                     "measures links alone; give models and ops a run of their own, and join the "
                     "files with plait profile merge");
  if (arguments.comm && given.format != "native")
    throw InputError("--format", "links have only plait's own");
  if (arguments.comm) return;
  if (arguments.local)
    throw InputError("--local", "goes with --comm; one device measures the rest");
  if (!arguments.threads.empty())
    throw InputError("--threads-per-rank", "goes with --comm and --local");
  if (!arguments.sizes.empty()) throw InputError("--sizes", "goes with --comm");
}

int profile(const ProfileArguments& arguments) {
  check_flags(arguments);
  if (arguments.words.empty())
    return arguments.comm ? measure_links(arguments) : measure(arguments);
  if (arguments.words[0] == "merge") return merge(arguments);
  if (arguments.words[0] == "diff") return diff(arguments);
  if (arguments.words[0] == "export") return convert(arguments);
  throw InputError(arguments.words[0],
                   "must be merge, diff or export; a model is named with --model");
}

}  // namespace

Command profile_command() {
  const auto arguments = std::make_shared<ProfileArguments>();
  Command command;
  command.groups = profile_flags(*arguments);
  command.run = [arguments] { return profile(*arguments); };
  return command;
}

}  // namespace plait
