#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "app/run/train.h"
#include "base/error.h"
#include "cli/flags/command.h"
#include "cli/flags/field_flags.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/terminal.h"
#include "runtime/launch/launcher.h"
#include "runtime/launch/restarts.h"

namespace plait {
namespace {

constexpr int kMostTrainSteps = 100'000'000;

struct TrainArguments {
  TrainRequest request;
  int stop_within = 60;  // seconds
};

int status_of(TrainEnd end) {
  switch (end) {
    case TrainEnd::done:
      return kDone;
    case TrainEnd::not_executable:
      return kNothingFits;
    case TrainEnd::wrong_input:
      return kWrongInput;
    case TrainEnd::diverged:
      return runtime::kDiverged;
    case TrainEnd::peer_lost:
      return runtime::kPeerLost;
    case TrainEnd::stopped:
      return kInterrupted;
    case TrainEnd::rank_failed:
      break;
  }
  return runtime::kRankFailed;
}

void tell(const std::string& json, const std::string& text, bool as_json) {
  if (as_json && !json.empty()) print_line(json);
  if (!text.empty()) std::fputs((text + "\n").c_str(), stderr);
}

int train(const TrainArguments& arguments) {
  TrainRequest request = resolved(arguments.request);
  request.stop_within = Seconds(arguments.stop_within);
  // A rank without a checkpoint has nothing to end in order for.
  std::optional<Interrupt> interrupt;
  if (request.local > 0 || !request.options.checkpoint.empty()) interrupt.emplace();
  TrainSession session;
  if (interrupt) session.stop = interrupt->token();
  session.tell = [](const std::string& sentence) { complain(in_flags(sentence)); };
  session.on_rank_line = pass_on_line;
  session.on_step = [&](const TrainStep& step) {
    tell(to_json(step), as_text(step), request.json);
  };
  const TrainAnswer result = answer(request, session);
  if (result.end == TrainEnd::not_executable)
    complain(fmt::format("{} cannot be executed: {}", request.path, result.why_not));
  tell(to_json(result), as_text(result), request.json);
  check_lines();
  return status_of(result.end);
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
           .set = into_integer(a.request.local, 1, 4096)},
          {.name = "--threads-per-rank",
           .value = "N,N..",
           .help = "threads of each rank, or one number for all; on CPUs",
           .set = into_list(a.request.threads, 1, 4096)},
          {.name = "--device",
           .value = "cpu|cuda",
           .help = "what the ranks compute on; a GPU where there is one",
           .set =
               [&a](const std::string& flag, const std::string& text) {
                 if (text != "cpu" && text != "cuda" && text != "auto")
                   throw InputError(flag, "must be cpu or cuda, is '" + text + "'");
                 a.request.device = text;
               },
           .choices = {"cpu", "cuda"}},
          {.name = "--max-restarts",
           .value = "N",
           .help = "restart up to N times when a rank fails; needs --local and --checkpoint",
           .set = into_integer(a.request.max_restarts, 0, 1000)},
          {.name = "--device-lost",
           .value = "",
           .help = "restart without the device of a rank that failed, with a new plan",
           .set = into_switch(a.request.device_lost)},
          {.name = "--stop-within",
           .value = "SECONDS",
           .help = "when stopped, give the ranks this long to end their step and save (60)",
           .set = into_integer(a.stop_within, 0, 86400)}};
}

std::vector<Flag> training_flags(TrainArguments& a) {
  runtime::TrainOptions& o = a.request.options;
  return {{.name = "--steps",
           .value = "N",
           .help = "steps from the start of the training (10)",
           .set = into_integer(o.steps, 1, kMostTrainSteps)},
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
           .help = "seed of the initial weights and of the samples (1)",
           .set =
               [&o](const std::string& flag, const std::string& text) {
                 int seed = 1;
                 into_integer(seed, 0, 2'000'000'000)(flag, text);
                 o.seed = static_cast<std::uint64_t>(seed);
               }},
          {.name = "--checkpoint",
           .value = "DIR",
           .help = "save checkpoints there, and continue from the last one",
           .set = into_text(o.checkpoint)},
          {.name = "--checkpoint-every",
           .value = "N",
           .help = "save every N steps, not only after the last",
           .set = into_integer(o.checkpoint_every, 1, kMostTrainSteps)},
          {.name = "--keep-checkpoints",
           .value = "N",
           .help = "remove older ones (2); 0 = keep all",
           .set = into_integer(o.keep_checkpoints, 0, kMostTrainSteps)}};
}

}  // namespace

Command train_command() {
  const auto arguments = std::make_shared<TrainArguments>();
  TrainArguments& a = *arguments;
  Command command;
  command.groups = {{"Arguments", {plan_file_flag(a.request.path)}},
                    {"Ranks", launch_flags(a)},
                    {"Training", training_flags(a)},
                    {"Output",
                     {{.name = "--json",
                       .value = "",
                       .help = "print every step as a line of JSON on stdout",
                       .set = into_switch(a.request.json)},
                      {.name = "--trace",
                       .value = "FILE",
                       .help = "write a timeline of the last 20 steps of every rank, for Perfetto",
                       .set = into_text(a.request.options.trace)}}}};
  command.run = [arguments] { return train(*arguments); };
  return command;
}

}  // namespace plait
