#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "app/request/output_file.h"
#include "base/error.h"
#include "base/printable.h"
#include "base/version.h"
#include "cli/flags/command.h"
#include "cli/flags/profile_arguments.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/terminal.h"
#include "io/format/json_writer.h"
#include "io/model/load_model.h"
#include "io/profile/profile_json.h"
#include "io/profile/write_profiles.h"
#include "plan/names.h"
#include "report/quantities.h"
#include "report/table.h"
#include "runtime/backend.h"
#include "runtime/launch/launcher.h"
#include "runtime/launch/rank.h"
#include "runtime/profiler/profile.h"
#include "runtime/profiler/profile_links.h"

namespace plait {
namespace {

// The command as it was typed, for the profile to tell.
std::string typed() {
  std::string text = "plait";
  const std::vector<std::string> words = runtime::command_line();
  for (std::size_t i = 1; i < words.size(); ++i) text += " " + words[i];
  return text;
}

void save(const Profile& profile, const std::string& output, const std::string& summary) {
  const std::string text = profile_file_to_json(profile);
  if (output.empty()) {
    print(text);
    return;
  }
  write_text_file(output, text);
  print(fmt::format("{}: {}\n", printable(output), summary));
}

int merge(const ProfileArguments& arguments) {
  if (arguments.words.size() < 3)
    throw InputError("plait profile merge", "needs two or more profile files");
  Profile all;
  for (std::size_t i = 1; i < arguments.words.size(); ++i)
    all = runtime::merged(std::move(all), read_profile_file(arguments.words[i]));
  save(all, arguments.output,
       fmt::format("{} units, {} ops, {} curves", all.compute.size(), all.ops.size(),
                   all.collectives.size()));
  return kDone;
}

int diff(const ProfileArguments& arguments) {
  if (arguments.words.size() != 3)
    throw InputError("plait profile diff", "needs two profile files");
  runtime::ProfileComparison comparison = runtime::compare_profiles(
      read_profile_file(arguments.words[1]), read_profile_file(arguments.words[2]));
  std::ranges::stable_sort(comparison.both, std::greater<>(),
                           [](const auto& d) { return std::abs(d.relative()); });
  if (arguments.json) {
    std::vector<std::string> items;
    for (const auto& d : comparison.both)
      items.push_back(JsonObject()
                          .text("what", d.what)
                          .number("a", d.a)
                          .number("b", d.b)
                          .number("relative", d.relative())
                          .str());
    print(lay_out_json(JsonObject()
                           .number("median", comparison.median())
                           .number("largest", comparison.largest())
                           .number("only_a", comparison.only_a)
                           .number("only_b", comparison.only_b)
                           .json("both", json_list(items))
                           .str()));
    return kDone;
  }
  constexpr std::size_t kShown = 20;
  Table table(
      {{"quantity", Align::left}, {arguments.words[1]}, {arguments.words[2]}, {"change %"}});
  for (std::size_t i = 0; i < std::min(kShown, comparison.both.size()); ++i) {
    const auto& d = comparison.both[i];
    table.row({d.what, fmt::format("{:.4g}", d.a), fmt::format("{:.4g}", d.b),
               fmt::format("{:+.1f}", 100 * d.relative())});
  }
  print(table.str(style_of(stdout)));
  print(
      fmt::format("{} quantities in both: median change {:.2f} %, largest {:.1f} %; {} points only "
                  "in the first, {} only in the second\n",
                  comparison.both.size(), 100 * comparison.median(), 100 * comparison.largest(),
                  comparison.only_a, comparison.only_b));
  return kDone;
}

// In another system's form: a directory of files.
void save_as(const ProfileArguments& arguments, const Profile& profile, const Model& model) {
  const TextFiles files = arguments.format == "metis"
                              ? metis_files(profile, model, arguments.meter.job)
                              : aceso_files(profile, model, arguments.meter.job);
  write_files(files, arguments.output);
  print(fmt::format("{}: {} as {} names them\n", printable(arguments.output),
                    counted(static_cast<int>(files.size()), "file"), arguments.format));
}

int convert(const ProfileArguments& arguments) {
  if (arguments.words.size() != 2 || arguments.format == "native" || arguments.model.empty() ||
      arguments.output.empty())
    throw InputError("plait profile export",
                     "needs a profile file, --model M, --format metis or aceso, and -o DIRECTORY");
  std::optional<int> sequence;
  if (!arguments.sequences.empty()) sequence = arguments.sequences.front();
  save_as(arguments, read_profile_file(arguments.words[1]),
          load_model(arguments.model, sequence).model);
  return kDone;
}

// Collectives between the ranks that a launcher has started, or that are started here.
int measure_links(const ProfileArguments& arguments) {
  if (!arguments.output.empty()) check_output(arguments.output);
  const auto place = runtime::rank_place(runtime::environment_variables());
  if (!place) {
    if (!arguments.local || *arguments.local < 2)
      throw InputError(
          "--comm", "needs two ranks or more: --local N, or a launcher such as torchrun or srun");
    runtime::need_backend("profile");
    Interrupt interrupt(Interrupt::By::requests);
    runtime::LaunchOptions options;
    options.command = runtime::command_line();
    options.command[0] = runtime::program_file();
    options.ranks = *arguments.local;
    options.threads = arguments.threads;
    options.stop = interrupt.token();
    options.first_beat = Seconds(120);  // libtorch is loaded by then
    options.on_line = pass_on_line;
    const runtime::LaunchOutcome outcome = runtime::launch(options);
    if (outcome.failure) throw InputError("--comm", in_words(*outcome.failure));
    return outcome.interrupted ? kInterrupted : kDone;
  }
  const runtime::Backend& backend = runtime::need_backend("profile");
  const runtime::Machine machine = backend.machine(arguments.meter);
  runtime::Heartbeat heart;
  Profile profile;
  profile.collectives = backend.links({.place = *place,
                                       .device = arguments.meter.device,
                                       .device_type = machine.device_type,
                                       .sizes = arguments.sizes,
                                       .longest = arguments.meter.longest,
                                       .heart = &heart,
                                       .tell = complain});
  if (place->rank != 0) return kDone;
  profile.provenance = {
      .source = "plait profile",
      .command = typed(),
      .versions = machine.versions,
      .notes = {fmt::format("{} ranks, {} on a machine, {}", place->world,
                            place->local_world > 0 ? place->local_world : place->world,
                            arguments.meter.device == "cuda" ? "NCCL" : "Gloo")}};
  profile.provenance.versions["plait"] = version();
  save(profile, arguments.output, counted(static_cast<int>(profile.collectives.size()), "curve"));
  return kDone;
}

// The model with each of the lengths.
std::vector<Model> models_of(const ProfileArguments& arguments, std::vector<std::string>& notes) {
  std::vector<std::optional<int>> lengths(arguments.sequences.begin(), arguments.sequences.end());
  if (lengths.empty()) lengths.emplace_back();
  std::vector<Model> models;
  for (const std::optional<int>& length : lengths) {
    LoadedModel loaded = load_model(arguments.model, length);
    notes.insert(notes.end(), loaded.warnings.begin(), loaded.warnings.end());
    models.push_back(arguments.granularity == "op" ? at_op_granularity(loaded.model)
                                                   : std::move(loaded.model));
  }
  return models;
}

int measure(const ProfileArguments& arguments) {
  if (arguments.model.empty() == arguments.ops.empty())
    throw InputError("plait profile", "give one of --model M, --ops FILE and --comm");
  const bool native = arguments.format == "native";
  if (!native && (arguments.output.empty() || arguments.model.empty()))
    throw InputError("--format", "needs --model M and -o DIRECTORY");
  if (native && !arguments.output.empty()) check_output(arguments.output);
  std::vector<std::string> notes;
  runtime::PointRequest request;
  std::vector<runtime::ProfilePoint> points;
  if (!arguments.ops.empty()) {
    points = runtime::points_of_list(arguments.ops);
  } else {
    request.models = models_of(arguments, notes);
    request.job = arguments.meter.job;
    request.tensors = arguments.tensors;
    request.micro_batches = arguments.micro_batches;
    request.units = arguments.what != "ops";
    request.ops = arguments.what != "units";
    points = runtime::points_of(request, notes);
  }
  if (points.empty()) throw InputError("plait profile", "there is nothing to measure");
  runtime::order_by_information(points);
  const runtime::Backend& backend = runtime::need_backend("profile");
  runtime::MeterOptions options = arguments.meter;
  options.longest = options.longest / arguments.rounds;
  const auto meter = backend.meter(options);
  runtime::PointCache cache(arguments.cache == "auto" ? runtime::usual_cache() : arguments.cache,
                            !arguments.fresh);
  Interrupt interrupt(Interrupt::By::requests);
  runtime::MeasureOutcome outcome;
  {
    Progress progress;
    outcome = runtime::measure_points(points, *meter,
                                      {.cache = cache,
                                       .rounds = arguments.rounds,
                                       .budget = Seconds(arguments.budget),
                                       .stop = interrupt.token(),
                                       .progress = [&](double fraction, Seconds left) {
                                         progress.expected(left);
                                         progress.advanced(fraction);
                                       }});
  }
  Profile profile = runtime::profile_of(points, outcome, meter->machine());
  profile.provenance.command = typed();
  profile.provenance.notes = notes;
  profile.provenance.notes.push_back(fmt::format(
      "precision {}, optimizer {}, attention {}", name_of(arguments.meter.job.precision),
      name_of(arguments.meter.job.optimizer), name_of(arguments.meter.job.attention)));
  if (outcome.left_out > 0)
    profile.provenance.notes.push_back(
        fmt::format("{} of {} points were left out: {}", outcome.left_out, points.size(),
                    interrupt.happened() ? "interrupted" : "the budget was spent"));
  for (const std::string& note : notes) warn(note);
  const auto fitting = std::ranges::count_if(
      outcome.results, [](const auto& result) { return result && result->out_of_memory; });
  if (!native) {
    save_as(arguments, profile, request.models.front());
    return interrupt.happened() ? kInterrupted : kDone;
  }
  save(profile, arguments.output,
       fmt::format("{} measured on {}, {} known before, {} left out, {} did not fit",
                   counted(outcome.measured, "point"), meter->machine().device_type,
                   outcome.from_cache, outcome.left_out, fitting));
  return interrupt.happened() ? kInterrupted : kDone;
}

void check_flags(const ProfileArguments& arguments) {
  if (arguments.comm && !(arguments.model.empty() && arguments.ops.empty()))
    throw InputError("--comm",
                     "measures links alone; give models and ops a run of their own, and join the "
                     "files with plait profile merge");
  if (arguments.comm && arguments.format != "native")
    throw InputError("--format", "of links there is only plait's own");
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
