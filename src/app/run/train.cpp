#include "app/run/train.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "app/request/output_file.h"
#include "app/request/request_error.h"
#include "app/run/machine_fit.h"
#include "cost/engine.h"
#include "io/plan/plan_json.h"
#include "report/quantities.h"
#include "runtime/backend.h"
#include "runtime/launch/private_folder.h"
#include "runtime/launch/restarts.h"
#include "runtime/lower/layout.h"
#include "runtime/lower/network_support.h"
#include "runtime/rank_request.h"
#include "runtime/state/token_file.h"

namespace plait {
namespace {

namespace fs = std::filesystem;

constexpr Seconds kFirstBeat(120);  // libtorch is loaded by then

void check_request(const TrainRequest& r) {
  if (r.max_restarts > 0 && (r.local == 0 || r.options.checkpoint.empty()))
    throw RequestError("max_restarts", "needs `local` N and `checkpoint` DIR");
  if (r.device_lost && r.max_restarts == 0)
    throw RequestError("device_lost", "needs `max_restarts` N");
  if (r.options.checkpoint_every > 0 && r.options.checkpoint.empty())
    throw RequestError("checkpoint_every", "needs `checkpoint` DIR");
  if (r.threads.size() > 1 && r.local == 0)
    throw RequestError("threads_per_rank", "needs `local` N to give each rank its own number");
}

// What is needed at the end of a long run is tried at its beginning.
void check_files(const runtime::TrainOptions& options) {
  if (!options.tokens.empty()) runtime::TokenFile tokens(options.tokens);
  if (!options.trace.empty()) check_output(options.trace);
  if (options.checkpoint.empty()) return;
  std::error_code fault, unknown;
  fs::create_directories(options.checkpoint, fault);
  const fs::file_status found = fs::status(options.checkpoint, unknown);
  if (fs::exists(found) && !fs::is_directory(found))
    throw InputError(options.checkpoint, "is a file; checkpoints go to a directory");
  if (!fs::is_directory(found))
    throw InputError(options.checkpoint, "cannot be made: " + (fault ? fault : unknown).message());
  if (access(options.checkpoint.c_str(), W_OK) != 0)
    throw InputError(options.checkpoint, std::string("cannot be written: ") + std::strerror(errno));
}

// The words of the ranks that train a plan: a request in a file, which they read.
std::vector<std::string> rank_words(const TrainRequest& request, const std::string& plan,
                                    const std::string& folder) {
  const std::string path = (fs::path(folder) / "request.json").string();
  write_text_file(path, runtime::rank_request_json({.plan = plan,
                                                    .options = request.options,
                                                    .device = request.device,
                                                    .json = request.json}));
  std::error_code ignored;
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write, ignored);
  return {runtime::torch_program_file(), "train", path};
}

TrainEnd end_of(const runtime::LaunchOutcome& outcome) {
  if (outcome.interrupted) return TrainEnd::stopped;
  if (!outcome.failure) return TrainEnd::done;
  if (outcome.failure->status == runtime::kWrongInputStatus) return TrainEnd::wrong_input;
  return outcome.failure->status == runtime::kDiverged ? TrainEnd::diverged : TrainEnd::rank_failed;
}

TrainEnd launch_ranks(const TrainRequest& request, int world, const TrainSession& session) {
  if (request.local != world)
    throw RequestError(
        "local", fmt::format("must be {}, the devices of the plan, is {}", world, request.local));
  const runtime::PrivateFolder folder;
  runtime::LaunchOptions options;
  options.threads = request.threads;
  options.stop = session.stop;
  options.first_beat = kFirstBeat;
  if (!request.options.checkpoint.empty()) options.stop_grace = request.stop_within;
  options.on_line = session.on_rank_line;
  runtime::RestartOptions restarts;
  restarts.most = request.max_restarts;
  restarts.device_lost = request.device_lost;
  restarts.folder = request.options.checkpoint;
  restarts.unsupported_reason = runtime::unsupported_reason;
  restarts.tell = session.tell;
  return end_of(runtime::launch_with_restarts(
      options, request.path, restarts,
      [&](const std::string& plan) { return rank_words(request, plan, folder.path()); }));
}

// The place of this process among the ranks; nothing when it is the only one.
std::optional<runtime::RankPlace> place_in(const TrainRequest& request, int world) {
  auto place = runtime::rank_place(runtime::environment_variables());
  if (!place && world > 1)
    throw InputError(request.path,
                     fmt::format("is a plan for {} devices: start its ranks with `local` {}, "
                                 "torchrun, srun or mpirun",
                                 world, world));
  if (place && place->world != world)
    throw InputError(request.path, fmt::format("is a plan for {} devices, but {} started {} ranks",
                                               world, place->launcher, place->world));
  return place;
}

TrainEnd end_of_rank(int status) {
  switch (status) {
    case 0:
      return TrainEnd::done;
    case runtime::kDiverged:
      return TrainEnd::diverged;
    case runtime::kPeerLost:
      return TrainEnd::peer_lost;
    case runtime::kRankStopped:
      return TrainEnd::stopped;
    default:
      return TrainEnd::rank_failed;
  }
}

// The first step pays for memory and kernels that the others find ready.
void compare(const PlanFile& file, std::vector<double> seconds, TrainAnswer& out) {
  if (seconds.size() < 2) return;
  seconds.erase(seconds.begin());
  std::sort(seconds.begin(), seconds.end());
  out.counted_steps = static_cast<int>(seconds.size());
  out.measured = Seconds(seconds[seconds.size() / 2]);
  out.predicted = CostEngine(file.problem).simulate(file.plan).step;
}

// Ranks first, first + 1, ...
std::vector<int> ranks_from(int first, int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), first);
  return ranks;
}

// Ranks of one machine are consecutive where a launcher says how many there are; otherwise each
// answers for itself.
void check_machine_of_rank(const TrainRequest& request, const PlanFile& file,
                           const std::optional<runtime::RankPlace>& place, int world) {
  std::vector<int> ranks = ranks_from(0, world);
  if (place && place->local_world > 0)
    ranks = ranks_from(std::max(0, place->rank - place->local_rank),
                       std::min(place->local_world, world));
  else if (place)
    ranks = {place->rank};
  std::erase_if(ranks, [&](int rank) { return rank >= world; });
  check_machine({file, ranks, request.device},
                runtime::local_machine(runtime::environment_variables()), request.path);
}

TrainAnswer run_rank(const TrainRequest& request, const PlanFile& file, int world,
                     const TrainSession& session) {
  const auto place = place_in(request, world);
  const runtime::Backend& backend = runtime::need_backend("train");
  if (!request.launched_here) check_machine_of_rank(request, file, place, world);
  if (!place || place->rank == 0) check_files(request.options);
  runtime::TrainRequest rank{.problem = file.problem, .plan = file.plan};
  rank.options = request.options;
  rank.options.cuda = request.device == "cuda" ||
                      (request.device == "auto" && backend.torch_build().ends_with("CUDA"));
  if (place) rank.place = *place;
  if (request.threads.size() == 1) rank.options.threads = request.threads[0];
  runtime::Heartbeat heart;
  rank.heart = &heart;
  rank.stop = session.stop;
  rank.tell = session.tell;
  std::vector<double> seconds;
  rank.on_step = [&](const runtime::StepReport& report) {
    seconds.push_back(report.seconds);
    const Seconds time(report.seconds);
    if (session.on_step)
      session.on_step({.report = report,
                       .samples_per_second = tokens_per_second(file.problem, time),
                       .tokens = file.problem.model.vocabulary > 0,
                       .mfu = model_flops_utilisation(file.problem, file.plan, time)});
  };
  TrainAnswer out{.end = end_of_rank(backend.train(rank))};
  if (out.end == TrainEnd::done && rank.place.rank == 0) compare(file, seconds, out);
  return out;
}

}  // namespace

TrainRequest resolved(const TrainRequest& request) {
  std::error_code unknown;
  if (!fs::is_regular_file(request.path, unknown)) {
    read_text_file(request.path);  // says why where there is nothing at all
    throw InputError(request.path, "is not a file: every rank reads the plan, so save it in one");
  }
  const JsonValue json = read_json_file(request.path);
  if (!runtime::is_rank_request(json)) return request;
  const runtime::RankRequest written = runtime::rank_request_from(json);
  TrainRequest out;
  out.path = written.plan;
  out.options = written.options;
  out.device = written.device;
  out.json = written.json;
  out.launched_here = true;
  return out;
}

TrainAnswer answer(const TrainRequest& request, const TrainSession& session) {
  check_request(request);
  const PlanFile file = read_plan_file(request.path);
  std::string reason = runtime::unsupported_reason(file.problem, file.plan);
  if (!reason.empty()) return {.end = TrainEnd::not_executable, .why_not = std::move(reason)};
  int world = 0;
  for (const Stage& stage : file.plan.stages) world += static_cast<int>(stage.devices.size());
  if (request.local == 0) return run_rank(request, file, world, session);
  if (runtime::backend() == nullptr) runtime::need_torch_program("train");
  if (request.local == world)
    check_machine({file, ranks_from(0, world), request.device},
                  runtime::local_machine(runtime::environment_variables()), request.path);
  check_files(request.options);
  return {.end = launch_ranks(request, world, session)};
}

}  // namespace plait
