#include "app/profile/measure.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/request/request_error.h"
#include "io/model/load_model.h"
#include "io/profile/profile_json.h"
#include "plan/names.h"
#include "report/quantities.h"
#include "runtime/backend.h"

namespace plait {
namespace {

void check_request(const MeasureRequest& request) {
  refuse_unknown("granularity", request.granularity, {"layer", "op"});
  refuse_unknown("what", request.what, {"all", "units", "ops"});
  refuse_unknown("format", request.format, profile_forms());
  if (request.model.empty() == request.ops.empty())
    throw InputError("plait profile", "give one of `model` M, `ops` FILE and `comm`");
  if (request.format != profile_forms().front() && request.model.empty())
    throw RequestError("format", "needs `model` M");
}

// The model with each of the lengths.
std::vector<Model> models_of(const MeasureRequest& request, std::vector<std::string>& notes) {
  std::vector<std::optional<int>> lengths(request.sequences.begin(), request.sequences.end());
  if (lengths.empty()) lengths.emplace_back();
  std::vector<Model> models;
  for (const std::optional<int>& length : lengths) {
    LoadedModel loaded = load_model(request.model, length);
    notes.insert(notes.end(), loaded.warnings.begin(), loaded.warnings.end());
    models.push_back(request.granularity == "op" ? at_op_granularity(loaded.model)
                                                 : std::move(loaded.model));
  }
  return models;
}

// The points to measure, the most informative first. `models` must outlive them.
std::vector<runtime::ProfilePoint> points_of(const MeasureRequest& request,
                                             runtime::PointRequest& models,
                                             std::vector<std::string>& notes) {
  std::vector<runtime::ProfilePoint> points;
  if (!request.ops.empty()) {
    points = runtime::points_of_list(request.ops);
  } else {
    models.models = models_of(request, notes);
    models.job = request.meter.job;
    models.tensors = request.tensors;
    models.micro_batches = request.micro_batches;
    models.units = request.what != "ops";
    models.ops = request.what != "units";
    points = runtime::points_of(models, notes);
  }
  if (points.empty()) throw InputError("plait profile", "there is nothing to measure");
  runtime::order_by_information(points);
  return points;
}

}  // namespace

MeasureAnswer answer(const MeasureRequest& request, const MeasureSession& session) {
  check_request(request);
  MeasureAnswer out;
  runtime::PointRequest models;
  const std::vector<runtime::ProfilePoint> points = points_of(request, models, out.warnings);
  const runtime::Backend& backend = runtime::need_backend("profile");
  runtime::MeterOptions options = request.meter;
  options.longest = options.longest / request.rounds;
  const auto meter = backend.meter(options);
  runtime::PointCache cache(request.cache == "auto" ? runtime::usual_cache() : request.cache,
                            !request.fresh);
  const runtime::MeasureOutcome outcome = runtime::measure_points(points, *meter,
                                                                  {.cache = cache,
                                                                   .rounds = request.rounds,
                                                                   .budget = request.budget,
                                                                   .stop = session.stop,
                                                                   .progress = session.progress});
  out.interrupted = session.stop.stop_requested();
  out.device_type = meter->machine().device_type;
  out.measured = outcome.measured;
  out.from_cache = outcome.from_cache;
  out.left_out = outcome.left_out;
  out.did_not_fit = static_cast<int>(std::ranges::count_if(
      outcome.results, [](const auto& result) { return result && result->out_of_memory; }));
  out.profile = runtime::profile_of(points, outcome, meter->machine());
  Provenance& provenance = out.profile.provenance;
  provenance.command = request.command;
  provenance.notes = out.warnings;
  provenance.notes.push_back(
      fmt::format("precision {}, optimizer {}, attention {}", name_of(request.meter.job.precision),
                  name_of(request.meter.job.optimizer), name_of(request.meter.job.attention)));
  if (out.left_out > 0)
    provenance.notes.push_back(
        fmt::format("{} of {} points were left out: {}", out.left_out, points.size(),
                    out.interrupted ? "interrupted" : "the budget was spent"));
  if (request.format != profile_forms().front())
    out.converted =
        converted(out.profile, models.models.front(), request.meter.job, request.format);
  return out;
}

std::string to_json(const MeasureAnswer& answer) { return profile_file_to_json(answer.profile); }

std::string as_text(const MeasureAnswer& answer) {
  return fmt::format("{} measured on {}, {} known before, {} left out, {} did not fit",
                     counted(answer.measured, "point"), answer.device_type, answer.from_cache,
                     answer.left_out, answer.did_not_fit);
}

}  // namespace plait
