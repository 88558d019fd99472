#include "runtime/torch/train/train_rank.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "io/format/json_reader.h"
#include "report/timeline.h"
#include "runtime/launch/restarts.h"
#include "runtime/meet/watchdog.h"
#include "runtime/torch/comm/device_state.h"
#include "runtime/torch/train/checkpointing.h"
#include "runtime/torch/train/trainer.h"

namespace plait::runtime {
namespace {

// Steps at the end of a run that a trace shows.
constexpr int kTracedSteps = 20;

double seconds_now() {
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
  if (request.tell) request.tell(text.substr(0, text.find('\n')));
}

class Diverged : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Once a loss is not a number, neither are the parameters: the last checkpoint is worth more.
void refuse_divergence(const StepReport& report, const TrainOptions& options) {
  if (std::isfinite(report.loss) && std::isfinite(report.gradient_norm)) return;
  const auto saved =
      options.checkpoint.empty() ? std::nullopt : latest_checkpoint(options.checkpoint);
  throw Diverged(
      fmt::format("step {} has the loss {} and a gradient of norm {}: the training "
                  "diverges; lower `learning_rate`{}",
                  report.step, report.loss, report.gradient_norm,
                  saved ? " and go on from " + *saved : " and begin again"));
}

// Whether any rank was asked to stop. All ranks ask together.
bool any_stops(const TrainRequest& request, Communicator& ranks) {
  const double mine = request.stop.stop_requested() ? 1 : 0;
  return ranks.everyone()
             .all_gather(at::full({1}, mine, at::kFloat).to(ranks.device()), 0)
             .sum()
             .item<double>() > 0;
}

int run_steps(const TrainRequest& request, Trainer& trainer, Communicator& ranks) {
  const TrainOptions& options = request.options;
  const bool saves = !options.checkpoint.empty();
  const CheckpointNote start = note_of(request.problem, options, 0);
  std::int64_t first = 0;
  std::optional<CheckpointClaim> claim;
  if (saves && ranks.rank() == 0) claim.emplace(options.checkpoint);
  if (saves) first = resume_checkpoint(trainer.parameters(), start, options.checkpoint, ranks);
  if (ranks.rank() == 0 && first >= options.steps)
    tell(request, fmt::format("{} has {} steps, and `steps` is {}: nothing is left to do",
                              latest_checkpoint(options.checkpoint).value_or(options.checkpoint),
                              first, options.steps));
  if (any_stops(request, ranks)) return kRankStopped;
  Timeline trace(trainer.stage(), ranks.rank(), fmt::format("rank {}", ranks.rank()));
  const double begin = seconds_now();
  bool stops = false;
  for (std::int64_t step = first; step < options.steps && !stops; ++step) {
    const StepReport report = trainer.step(step, request.stop);
    if (ranks.rank() == 0 && request.on_step) request.on_step(report);
    refuse_divergence(report, options);
    stops = report.stop;
    if (!options.trace.empty() && step + kTracedSteps >= options.steps)
      add_step(static_cast<int>(step), trainer, begin, trace);
    const bool due = options.checkpoint_every > 0 && (step + 1) % options.checkpoint_every == 0;
    if (saves && (due || stops || step + 1 == options.steps))
      save_checkpoint(trainer.parameters(), note_of(request.problem, options, step + 1),
                      options.checkpoint, options.keep_checkpoints, ranks, request.heart);
  }
  if (stops && saves && ranks.rank() == 0)
    tell(request, "stops as it was asked to, and has saved " +
                      latest_checkpoint(options.checkpoint).value_or(""));
  if (!options.trace.empty()) write_trace(options.trace, trace, ranks);
  return stops ? kRankStopped : 0;
}

int train_on(const TrainRequest& request, at::Device device) {
  const RankPlace& place = request.place;
  std::shared_ptr<Meeting> meeting;  // outlives a failure: the watchdogs' store is rank 0's
  std::unique_ptr<Watchdog> watchdog;
  try {
    const MeetingPlace there = place.world > 1 ? meeting_place(place) : MeetingPlace();
    meeting = place.world > 1 ? meet_at(there, place.rank, request.tell) : meet_in_process();
    // plait's own launcher watches over its ranks by itself.
    if (place.world > 1 && request.heart != nullptr && std::getenv(kHeartbeatVariable) == nullptr)
      watchdog = std::make_unique<Watchdog>(there, place.rank, *request.heart,
                                            WatchdogOptions{.tell = request.tell});
    Communicator ranks(meeting, place.rank, place.world, device, request.heart);
    Trainer trainer(request.problem, request.plan, request.options, ranks, request.heart);
    const int status = run_steps(request, trainer, ranks);
    // Nobody leaves, and takes the store away, before all are done.
    ranks.everyone().all_gather(at::zeros({1}, device), 0);
    if (watchdog != nullptr) watchdog->finish();
    return status;
  } catch (const PeerLost& error) {
    const auto failure = watchdog == nullptr ? std::nullopt : watchdog->failure(Seconds(10));
    tell(request, failure ? in_words(*failure) : error.what());
    return kPeerLost;
  } catch (const Diverged& error) {
    if (place.rank == 0) tell(request, error.what());
    if (watchdog != nullptr) watchdog->finish();
    return kDiverged;
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
      throw InputError("`device`", fmt::format("cuda needs a GPU for each rank of a machine: there "
                                               "are {}, this is local rank {}",
                                               cuda_devices(), place.local_rank));
    device = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(place.local_rank));
  }
  const c10::OptionalDeviceGuard guard(device);
  return train_on(request, device);
}

}  // namespace plait::runtime
