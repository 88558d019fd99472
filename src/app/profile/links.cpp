#include "app/profile/links.h"

#include <fmt/format.h>

#include "app/request/request_error.h"
#include "base/version.h"
#include "io/profile/profile_json.h"
#include "report/quantities.h"
#include "runtime/backend.h"
#include "runtime/launch/launcher.h"
#include "runtime/launch/rank.h"
#include "runtime/profiler/profile_links.h"

namespace plait {
namespace {

constexpr Seconds kFirstLinkBeat(120);  // libtorch is loaded by then

LinksAnswer launch_ranks(const LinksRequest& request, const LinksSession& session) {
  if (request.local < 2)
    throw RequestError(
        "comm", "needs two ranks or more: `local` N, or a launcher such as torchrun or srun");
  runtime::need_backend("profile");
  runtime::LaunchOptions options;
  options.command = request.rank_command;
  options.ranks = request.local;
  options.threads = request.threads;
  options.stop = session.stop;
  options.first_beat = kFirstLinkBeat;
  options.on_line = session.on_rank_line;
  const runtime::LaunchOutcome outcome = runtime::launch(options);
  if (outcome.failure) throw RequestError("comm", in_words(*outcome.failure));
  LinksAnswer out;
  out.interrupted = outcome.interrupted;
  return out;
}

}  // namespace

LinksAnswer answer(const LinksRequest& request, const LinksSession& session) {
  const auto place = runtime::rank_place(runtime::environment_variables());
  if (!place) return launch_ranks(request, session);
  const runtime::Backend& backend = runtime::need_backend("profile");
  const runtime::Machine machine = backend.machine(request.meter);
  runtime::Heartbeat heart;
  LinksAnswer out;
  out.profile.collectives = backend.links({.place = *place,
                                           .device = request.meter.device,
                                           .device_type = machine.device_type,
                                           .sizes = request.sizes,
                                           .longest = request.meter.longest,
                                           .heart = &heart,
                                           .tell = session.tell});
  out.measured = place->rank == 0;
  out.profile.provenance = {
      .source = "plait profile",
      .command = request.command,
      .versions = machine.versions,
      .notes = {fmt::format("{} ranks, {} on a machine, {}", place->world,
                            place->local_world > 0 ? place->local_world : place->world,
                            request.meter.device == "cuda" ? "NCCL" : "Gloo")}};
  out.profile.provenance.versions["plait"] = version();
  return out;
}

std::string to_json(const LinksAnswer& answer) { return profile_file_to_json(answer.profile); }

std::string as_text(const LinksAnswer& answer) {
  return counted(static_cast<int>(answer.profile.collectives.size()), "curve");
}

}  // namespace plait
