#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "app/request/output_file.h"
#include "base/error.h"
#include "cli/flags/command.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/terminal.h"
#include "cost/engine.h"
#include "io/format/json_writer.h"
#include "io/plan/plan_json.h"
#include "plan/describe.h"
#include "report/quantities.h"
#include "runtime/backend.h"
#include "runtime/launch/private_folder.h"
#include "runtime/launch/restarts.h"
#include "runtime/lower/layout.h"
#include "runtime/lower/network_support.h"
#include "runtime/rank_request.h"
#include "runtime/state/token_file.h"
#include "runtime/train.h"

namespace plait {
namespace {

constexpr int kMaxSteps = 100'000'000;

struct TrainArguments {
  std::string path;
  int local = 0;
  std::vector<int> threads;
  std::string device = "auto";
  bool json = false;
  int stop_within = 60;  // seconds
  runtime::RestartOptions restarts;
  runtime::TrainOptions options;
};

// Prints steps as they come, and at the end how they compare with what was predicted.
class TrainLog {
 public:
  TrainLog(const PlanFile& file, bool json) : file_(file), json_(json) {}

  void step(const runtime::StepReport& report) {
    seconds_.push_back(report.seconds);
    const Seconds time(report.seconds);
    const double tokens = tokens_per_second(file_.problem, time);
    const double mfu = model_flops_utilisation(file_.problem, file_.plan, time);
    if (json_)
      print(JsonObject()
                .number("step", static_cast<double>(report.step))
                .json("loss", number_or_null(report.loss))
                .json("gradient_norm", number_or_null(report.gradient_norm))
                .number("step_s", report.seconds)
                .number("tokens_per_s", tokens)
                .number("mfu", mfu)
                .number("peak_memory_GiB", report.peak_bytes / 0x1p30)
                .json("busy_s", numbers(report.busy))
                .json("idle_s", numbers(report.idle))
                .str() +
            "\n");
    std::string line =
        fmt::format("step {} | loss {:.6f} | time {:.4g} s | {} {}/s | MFU {}", report.step,
                    report.loss, report.seconds, grouped(tokens),
                    file_.problem.model.vocabulary > 0 ? "tokens" : "images", percent(mfu));
    line += fmt::format(" | memory {:.2f} GiB | norm {:.3g}", report.peak_bytes / 0x1p30,
                        report.gradient_norm);
    if (report.busy.size() > 1) line += " | busy";
    for (std::size_t s = 0; report.busy.size() > 1 && s < report.busy.size(); ++s)
      line += " " + percent(report.busy[s] / report.seconds);
    std::fputs((line + "\n").c_str(), stderr);
  }

  void end() {
    if (seconds_.size() < 2) return;
    // The first step pays for memory and kernels that the others find ready.
    std::vector<double> sorted(seconds_.begin() + 1, seconds_.end());
    std::sort(sorted.begin(), sorted.end());
    const double median = sorted[sorted.size() / 2];
    const Estimate estimate = CostEngine(file_.problem).simulate(file_.plan);
    const double error = estimate.step.value / median - 1;
    if (json_)
      print(JsonObject()
                .number("measured_step_s", median)
                .number("predicted_step_s", estimate.step.value)
                .number("prediction_error", error)
                .str() +
            "\n");
    std::fputs(
        fmt::format("measured {} a step (median of {}), predicted {}: {:+.1f} %\n",
                    in_words(Seconds(median)), sorted.size(), in_words(estimate.step), 100 * error)
            .c_str(),
        stderr);
  }

 private:
  // The loss of a run that diverges is not a number.
  static std::string number_or_null(double value) {
    return std::isfinite(value) ? json_number(value) : "null";
  }

  static std::string numbers(const std::vector<double>& values) {
    std::string text;
    for (const double value : values)
      text += fmt::format("{}{:.6g}", text.empty() ? "" : ", ", value);
    return "[" + text + "]";
  }

  const PlanFile& file_;
  bool json_;
  std::vector<double> seconds_;
};

void check_flags(const TrainArguments& a) {
  if (a.restarts.most > 0 && (a.local == 0 || a.options.checkpoint.empty()))
    throw InputError("--max-restarts", "needs --local N and --checkpoint DIR");
  if (a.restarts.device_lost && a.restarts.most == 0)
    throw InputError("--device-lost", "needs --max-restarts N");
  if (a.options.checkpoint_every > 0 && a.options.checkpoint.empty())
    throw InputError("--checkpoint-every", "needs --checkpoint DIR");
  if (a.threads.size() > 1 && a.local == 0)
    throw InputError("--threads-per-rank", "needs --local N to give each rank its own number");
}

// What is needed at the end of a long run is tried at its beginning.
void check_files(const runtime::TrainOptions& options) {
  namespace fs = std::filesystem;
  if (!options.tokens.empty()) runtime::TokenFile tokens(options.tokens);
  if (!options.trace.empty()) check_output(options.trace);
  if (options.checkpoint.empty()) return;
  std::error_code fault;
  fs::create_directories(options.checkpoint, fault);
  std::error_code unknown;
  const fs::file_status found = fs::status(options.checkpoint, unknown);
  if (fs::exists(found) && !fs::is_directory(found))
    throw InputError(options.checkpoint, "is a file; checkpoints go to a directory");
  if (!fs::is_directory(found))
    throw InputError(options.checkpoint, "cannot be made: " + (fault ? fault : unknown).message());
  if (access(options.checkpoint.c_str(), W_OK) != 0)
    throw InputError(options.checkpoint, std::string("cannot be written: ") + std::strerror(errno));
}

// The words of the ranks that train a plan: a request in a file, which they read.
std::vector<std::string> rank_words(const TrainArguments& arguments, const std::string& plan,
                                    const std::string& folder) {
  const std::string path = (std::filesystem::path(folder) / "request.json").string();
  write_text_file(path, runtime::rank_request_json({.plan = plan,
                                                    .options = arguments.options,
                                                    .device = arguments.device,
                                                    .json = arguments.json}));
  std::error_code ignored;
  std::filesystem::permissions(
      path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write, ignored);
  return {runtime::torch_program_file(), "train", path};
}

int launch_ranks(const TrainArguments& arguments, int world) {
  if (arguments.local != world)
    throw InputError("--local", fmt::format("must be {}, the devices of the plan, is {}", world,
                                            arguments.local));
  const Interrupt interrupt(Interrupt::By::requests);
  const runtime::PrivateFolder folder;
  runtime::LaunchOptions options;
  options.threads = arguments.threads;
  options.stop = interrupt.token();
  options.first_beat = Seconds(120);  // libtorch is loaded by then
  if (!arguments.options.checkpoint.empty()) options.stop_grace = Seconds(arguments.stop_within);
  options.on_line = pass_on_line;
  runtime::RestartOptions restarts = arguments.restarts;
  restarts.folder = arguments.options.checkpoint;
  restarts.unsupported_reason = runtime::unsupported_reason;
  restarts.tell = [](const std::string& sentence) { complain(sentence); };
  const runtime::LaunchOutcome outcome = runtime::launch_with_restarts(
      options, arguments.path, restarts,
      [&](const std::string& plan) { return rank_words(arguments, plan, folder.path()); });
  if (outcome.interrupted) return kInterrupted;
  if (!outcome.failure) return kDone;
  const int status = outcome.failure->status;
  return status == kWrongInput || status == runtime::kDiverged ? status : runtime::kRankFailed;
}

// A rank that a launcher has started, or the only one.
int run_rank(const TrainArguments& arguments, const PlanFile& file, int world) {
  const auto place = runtime::rank_place(runtime::environment_variables());
  if (!place && world > 1)
    throw InputError(arguments.path,
                     fmt::format("is a plan for {} devices: start its ranks with --local {}, "
                                 "torchrun, srun or mpirun",
                                 world, world));
  if (place && place->world != world)
    throw InputError(arguments.path,
                     fmt::format("is a plan for {} devices, but {} started {} ranks", world,
                                 place->launcher, place->world));
  const runtime::Backend& backend = runtime::need_backend("train");
  if (!place || place->rank == 0) {
    check_files(arguments.options);
    for (const std::string& note : runtime::execution_notes(file.problem.model))
      complain("note: " + note);
  }
  runtime::TrainRequest request{.problem = file.problem, .plan = file.plan};
  request.options = arguments.options;
  request.options.cuda = arguments.device == "cuda" ||
                         (arguments.device == "auto" && backend.torch_build().ends_with("CUDA"));
  if (place) request.place = *place;
  if (arguments.threads.size() == 1) request.options.threads = arguments.threads[0];
  runtime::Heartbeat heart;
  request.heart = &heart;
  TrainLog log(file, arguments.json);
  // Without a checkpoint there is nothing to end in order for.
  std::optional<Interrupt> interrupt;
  if (!request.options.checkpoint.empty()) interrupt.emplace(Interrupt::By::requests);
  if (interrupt) request.stop = interrupt->token();
  request.on_step = [&](const runtime::StepReport& report) { log.step(report); };
  request.tell = complain;
  const int status = backend.train(request);
  if (status == kDone && request.place.rank == 0) log.end();
  return status;
}

// What a launcher of ours wrote for its ranks, in the place of flags.
TrainArguments arguments_in(const std::string& path) {
  const runtime::RankRequest request = runtime::rank_request_from(read_json_file(path));
  TrainArguments arguments;
  arguments.path = request.plan;
  arguments.options = request.options;
  arguments.device = request.device;
  arguments.json = request.json;
  return arguments;
}

int train(TrainArguments arguments) {
  check_flags(arguments);
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(arguments.path, unknown)) {
    read_text_file(arguments.path);  // says why where there is nothing at all
    throw InputError(arguments.path, "is not a file: every rank reads the plan, so save it in one");
  }
  if (runtime::is_rank_request(read_json_file(arguments.path)))
    arguments = arguments_in(arguments.path);
  const PlanFile file = read_plan_file(arguments.path);
  const std::string reason = runtime::unsupported_reason(file.problem, file.plan);
  if (!reason.empty()) {
    complain(fmt::format("{} cannot be executed: {}", arguments.path, reason));
    return kNothingFits;
  }
  int world = 0;
  for (const Stage& stage : file.plan.stages) world += static_cast<int>(stage.devices.size());
  if (arguments.local == 0) return run_rank(arguments, file, world);
  if (runtime::backend() == nullptr) runtime::need_torch_program("train");
  check_files(arguments.options);
  return launch_ranks(arguments, world);
}

Setter into_number(double& into, double least) {
  return [&into, least](const std::string& flag, const std::string& text) {
    std::size_t used = 0;
    double value = 0;
    try {
      value = std::stod(text, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used != text.size() || text.empty() || !(value >= least) || value > 1e9)
      throw InputError(flag, fmt::format("must be a number of at least {}, is '{}'", least, text));
    into = value;
  };
}

std::vector<Flag> launch_flags(TrainArguments& a) {
  return {{.name = "--local",
           .value = "N",
           .help = "start the plan's N ranks on this machine",
           .set = into_integer(a.local, 1, 4096)},
          {.name = "--threads-per-rank",
           .value = "N,N..",
           .help = "threads of each rank, or one number for all; on CPUs",
           .set = into_list(a.threads, 1, 4096)},
          {.name = "--device",
           .value = "cpu|cuda",
           .help = "what the ranks compute on; a GPU where there is one",
           .set =
               [&a](const std::string& flag, const std::string& text) {
                 if (text != "cpu" && text != "cuda" && text != "auto")
                   throw InputError(flag, "must be cpu or cuda, is '" + text + "'");
                 a.device = text;
               },
           .choices = {"cpu", "cuda"}},
          {.name = "--max-restarts",
           .value = "N",
           .help = "start again so often when a rank fails; needs --local and --checkpoint",
           .set = into_integer(a.restarts.most, 0, 1000)},
          {.name = "--device-lost",
           .value = "",
           .help = "restart without the device of a rank that failed, with a new plan",
           .set = into_switch(a.restarts.device_lost)},
          {.name = "--stop-within",
           .value = "SECONDS",
           .help = "when stopped, let the ranks end their step and save for so long (60)",
           .set = into_integer(a.stop_within, 0, 86400)}};
}

std::vector<Flag> training_flags(TrainArguments& a) {
  runtime::TrainOptions& o = a.options;
  return {{.name = "--steps",
           .value = "N",
           .help = "steps from the start of the training (10)",
           .set = into_integer(o.steps, 1, kMaxSteps)},
          {.name = "--tokens",
           .value = "FILE",
           .help = "what to train on, from plait tokenize; synthetic samples without it",
           .set = into_text(o.tokens)},
          {.name = "--lr",
           .value = "X",
           .help = "learning rate (3e-4)",
           .set = into_number(o.learning_rate, 0)},
          {.name = "--clip",
           .value = "X",
           .help = "clip the gradient's norm to this (1); 0 = never",
           .set = into_number(o.clip, 0)},
          {.name = "--weight-decay",
           .value = "X",
           .help = "decoupled weight decay (0)",
           .set = into_number(o.weight_decay, 0)},
          {.name = "--adam-epsilon",
           .value = "X",
           .help = "added to Adam's divisor (1e-8)",
           .set = into_number(o.epsilon, 0)},
          {.name = "--seed",
           .value = "N",
           .help = "of the first weights and of the samples (1)",
           .set =
               [&o](const std::string& flag, const std::string& text) {
                 int seed = 1;
                 into_integer(seed, 0, 2'000'000'000)(flag, text);
                 o.seed = static_cast<std::uint64_t>(seed);
               }},
          {.name = "--checkpoint",
           .value = "DIR",
           .help = "save there, and go on from its last checkpoint",
           .set = into_text(o.checkpoint)},
          {.name = "--checkpoint-every",
           .value = "N",
           .help = "save every N steps, not only after the last",
           .set = into_integer(o.checkpoint_every, 1, kMaxSteps)},
          {.name = "--keep-checkpoints",
           .value = "N",
           .help = "remove older ones (2); 0 = keep all",
           .set = into_integer(o.keep_checkpoints, 0, kMaxSteps)}};
}

}  // namespace

Command train_command() {
  const auto arguments = std::make_shared<TrainArguments>();
  TrainArguments& a = *arguments;
  Command command;
  command.groups = {{"Arguments", {plan_file_flag(a.path)}},
                    {"Ranks", launch_flags(a)},
                    {"Training", training_flags(a)},
                    {"Output",
                     {{.name = "--json",
                       .value = "",
                       .help = "print every step as a line of JSON on stdout",
                       .set = into_switch(a.json)},
                      {.name = "--trace",
                       .value = "FILE",
                       .help = "write when every rank ran what, in the last 20 steps, for Perfetto",
                       .set = into_text(a.options.trace)}}}};
  command.run = [arguments] { return train(*arguments); };
  return command;
}

}  // namespace plait
