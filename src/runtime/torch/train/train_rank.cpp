#include "runtime/torch/train/train_rank.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <optional>

#include "base/error.h"
#include "io/format/json_reader.h"
#include "report/timeline.h"
#include "runtime/torch/comm/device_state.h"
#include "runtime/torch/comm/watchdog.h"
#include "runtime/torch/train/checkpointing.h"
#include "runtime/torch/train/trainer.h"

namespace plait::runtime {
namespace {

// Steps at the end of a run that a trace shows.
constexpr int kTracedSteps = 20;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// What the rank did in a step; times count from `begin`.
void add_step(int step, const Trainer& trainer, double begin, Timeline& into) {
  const auto at = [&](double time) { return Seconds(time - begin); };
  for (const Trainer::TaskTime& time : trainer.task_times()) {
    const double start = time.begin + time.waited;
    if (time.waited > 1e-6) into.wait(step, time.task, at(time.begin), at(start));
    into.task(step, time.task, at(start), at(time.end));
  }
  for (const Trainer::EndTime& time : trainer.end_times())
    into.end_of_step(step, time.what, at(time.begin), at(time.end));
}

void write_trace(const std::string& path, const Timeline& mine, Communicator& ranks) {
  if (ranks.rank() != 0) {
    ranks.put("trace " + std::to_string(ranks.rank()), mine.text());
    return;
  }
  std::vector<std::string> all{mine.text()};
  for (int r = 1; r < ranks.world(); ++r) all.push_back(ranks.get("trace " + std::to_string(r)));
  write_text_file(path, trace_file(all));
}

void tell(const TrainRequest& request, const std::string& text) {
  if (request.on_trouble) request.on_trouble(text.substr(0, text.find('\n')));
}

// Once a loss is no number, neither are the parameters: the last checkpoint is worth more.
void refuse_divergence(const StepReport& report, const TrainOptions& options) {
  if (std::isfinite(report.loss) && std::isfinite(report.gradient_norm)) return;
  const auto saved =
      options.checkpoint.empty() ? std::nullopt : latest_checkpoint(options.checkpoint);
  throw InputError(fmt::format("step {}", report.step),
                   fmt::format("has the loss {} and the gradient's norm {}: the training diverges; "
                               "lower --lr{}",
                               report.loss, report.gradient_norm,
                               saved ? " and go on from " + *saved : " and begin again"));
}

void run_steps(const TrainRequest& request, Trainer& trainer, Communicator& ranks) {
  const TrainOptions& options = request.options;
  const CheckpointNote start = note_of(request.problem, options, 0);
  std::int64_t first = 0;
  std::optional<CheckpointClaim> claim;
  if (!options.checkpoint.empty() && ranks.rank() == 0) claim.emplace(options.checkpoint);
  if (!options.checkpoint.empty())
    first = resume_checkpoint(trainer.parameters(), start, options.checkpoint, ranks);
  if (ranks.rank() == 0 && first >= options.steps)
    tell(request, fmt::format("{} has {} steps, and --steps is {}: nothing is left to do",
                              latest_checkpoint(options.checkpoint).value_or(options.checkpoint),
                              first, options.steps));
  ranks.everyone().all_gather(at::zeros({1}, ranks.device()), 0);
  Timeline trace(trainer.stage(), ranks.rank(), fmt::format("rank {}", ranks.rank()));
  const double begin = now();
  for (std::int64_t step = first; step < options.steps; ++step) {
    const StepReport report = trainer.step(step);
    if (ranks.rank() == 0 && request.on_step) request.on_step(report);
    refuse_divergence(report, options);
    if (!options.trace.empty() && step + kTracedSteps >= options.steps)
      add_step(static_cast<int>(step), trainer, begin, trace);
    const bool due = options.checkpoint_every > 0 && (step + 1) % options.checkpoint_every == 0;
    if (!options.checkpoint.empty() && (due || step + 1 == options.steps))
      save_checkpoint(trainer.parameters(), note_of(request.problem, options, step + 1),
                      options.checkpoint, options.keep_checkpoints, ranks, request.heart);
  }
  if (!options.trace.empty()) write_trace(options.trace, trace, ranks);
}

int train_on(const TrainRequest& request, at::Device device) {
  const RankPlace& place = request.place;
  std::shared_ptr<Meeting> meeting;  // outlives a failure: the watchdogs' store is rank 0's
  std::unique_ptr<Watchdog> watchdog;
  try {
    meeting = place.world > 1 ? meet_at(place) : meet_in_process();
    // plait's own launcher watches over its ranks by itself.
    if (place.world > 1 && request.heart != nullptr && std::getenv(kHeartbeatVariable) == nullptr)
      watchdog = std::make_unique<Watchdog>(place, *request.heart);
    Communicator ranks(meeting, place.rank, place.world, device, place.address, request.heart);
    Trainer trainer(request.problem, request.plan, request.options, ranks, request.heart);
    run_steps(request, trainer, ranks);
    // Nobody leaves, and takes the store away, before all are done.
    ranks.everyone().all_gather(at::zeros({1}, device), 0);
    if (watchdog != nullptr) watchdog->finish();
    return 0;
  } catch (const PeerLost& error) {
    const auto failure = watchdog == nullptr ? std::nullopt : watchdog->failure(Seconds(10));
    tell(request, failure ? in_words(*failure) : error.what());
    return kPeerLost;
  } catch (const InputError&) {
    throw;
  } catch (const std::exception& error) {
    tell(request, error.what());
    return kRankFailed;
  }
}

}  // namespace

int train_rank(const TrainRequest& request) {
  const RankPlace& place = request.place;
  keep_freed_memory();
  use_threads(request.options.threads);
  at::Device device(at::kCPU);
  if (request.options.cuda) {
    if (place.local_rank >= cuda_devices())
      throw InputError("--device", fmt::format("cuda needs a GPU for each rank of a machine: there "
                                               "are {}, this is local rank {}",
                                               cuda_devices(), place.local_rank));
    device = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(place.local_rank));
  }
  const c10::OptionalDeviceGuard guard(device);
  return train_on(request, device);
}

}  // namespace plait::runtime
