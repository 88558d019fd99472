#include "app/plan/largest.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "app/plan/quick_search.h"
#include "app/request/request_error.h"
#include "io/format/json_writer.h"
#include "report/plan_tables.h"
#include "report/quantities.h"
#include "search/space/space.h"

namespace plait {
namespace {

constexpr int kMostTokens = 1 << 24;
constexpr int kMostSamples = 1'000'000;

PlanRequest at_size(const LargestRequest& request, int size) {
  PlanRequest out = request;
  if (request.of == LargestOf::sequence) {
    out.source.sequence = size;
    return out;
  }
  out.source.job.global_batch = size;
  if (!out.search.pins.micro_batches) out.search.pins.micro_batches = 1;
  return out;
}

// Pins that a size cannot have (degrees that do not divide it) are as good as too little memory.
std::optional<LoadedSearch> load_size(const LargestRequest& request, int size) {
  try {
    return load_search(at_size(request, size));
  } catch (const RequestError&) {
    return std::nullopt;
  }
}

bool fits(const LargestRequest& request, int size, Seconds spent, const Session& session) {
  const auto loaded = load_size(request, size);
  return loaded && fits_thriftily(loaded->problem, in_time_left(loaded->options, spent), session);
}

// The largest multiple of `unit` up to `most` that fits; 0 when one unit does not.
int largest_multiple(int unit, int most, const std::function<bool(int)>& fits_at) {
  if (!fits_at(unit)) return 0;
  int good = 1;
  int bad = most / unit + 1;
  while (good * 2 < bad && bad > most / unit) {
    if (fits_at(good * 2 * unit))
      good *= 2;
    else
      bad = good * 2;
  }
  while (bad - good > 1) {
    const int middle = good + (bad - good) / 2;
    (fits_at(middle * unit) ? good : bad) = middle;
  }
  return good * unit;
}

struct Found {
  int size = 0;
  int next = 0;
};

Found largest_sequence(const std::function<bool(int)>& fits_at) {
  for (const int unit : {1024, 128})
    if (const int size = largest_multiple(unit, kMostTokens, fits_at); size > 0)
      return {size, size + unit > kMostTokens ? 0 : size + unit};
  return {0, 128};
}

// Of `micro_batches` micro-batches.
Found largest_batch(int devices, int micro_batches, const std::function<bool(int)>& fits_at) {
  const int unit = devices * micro_batches;
  if (const int size = largest_multiple(unit, kMostSamples, fits_at); size > 0)
    return {size, size + unit > kMostSamples ? 0 : size + unit};
  std::vector<int> fewer = divisors_of(devices);
  int next = unit;
  fewer.pop_back();
  for (; !fewer.empty(); fewer.pop_back()) {
    const int size = fewer.back() * micro_batches;
    if (fits_at(size)) return {size, next};
    next = size;
  }
  return {0, micro_batches};
}

void check_request(const LargestRequest& request) {
  const bool batch = request.of == LargestOf::batch;
  const bool said = batch ? request.source.job.global_batch > 0 || request.source.batch_tokens
                          : request.source.sequence.has_value();
  if (said)
    throw RequestError(batch ? "max_batch" : "max_seq",
                       fmt::format("asks for the largest; `{}` is given as well",
                                   batch ? "global_batch" : "sequence"));
  if (request.objective.needs_prices())
    throw RequestError(batch ? "max_batch" : "max_seq",
                       "goes with the fastest step, not with prices, deadlines or budgets");
}

}  // namespace

LargestAnswer answer(const LargestRequest& request, const Session& session) {
  check_request(request);
  LargestAnswer out;
  out.of = request.of;
  // What is left is for the plan of that size.
  constexpr double kOfTheLimit = 0.6;
  const Stopwatch watch;
  const Seconds kept = (1 - kOfTheLimit) * request.search.time_limit;
  const auto fits_at = [&](int size) {
    const Seconds spent = watch.elapsed() + kept;
    out.cut_short |= spent >= request.search.time_limit || session.stop.stop_requested();
    return !out.cut_short && fits(request, size, spent, session);
  };
  const bool sequence = request.of == LargestOf::sequence;
  const int devices =
      sequence ? 1 : load_problem(at_size(request, 1).source).problem.cluster.device_count();
  const int micro_batches = request.search.pins.micro_batches.value_or(1);
  if (!sequence && micro_batches > kMostSamples / devices)
    throw RequestError("micro_batches",
                       fmt::format("{} on {} leave no batch of at most {}", micro_batches,
                                   counted(devices, "device"), grouped(kMostSamples)));
  const Found found =
      sequence ? largest_sequence(fits_at) : largest_batch(devices, micro_batches, fits_at);
  out.value = found.size;
  out.next = found.next;
  PlanRequest best = at_size(request, found.size > 0 ? found.size : found.next);
  best.search = in_time_left(best.search, watch.elapsed());
  out.plan = answer(best, session);
  if (out.value == 0 && out.plan.found()) out.value = std::exchange(out.next, 0);
  if (!out.found() || out.next == 0) return out;
  if (out.cut_short) {
    out.next_lacks = "there was no time to find a plan";
    return out;
  }
  const auto next = load_size(request, out.next);
  if (!next) {
    out.next_lacks = "no plan can have the pinned degrees";
    return out;
  }
  const auto nearest =
      nearest_plan(next->problem, in_time_left(next->options, watch.elapsed()), session);
  out.next_lacks =
      nearest ? fmt::format("in the nearest plan ({}) {}", short_description(nearest->plan),
                            shortage(next->problem, *nearest))
              : "no plan was found";
  return out;
}

std::string reason(const LargestAnswer& answer) { return reason(answer.plan); }

std::string to_json(const LargestAnswer& answer) {
  return lay_out_json(
      JsonObject()
          .text("largest", answer.of == LargestOf::sequence ? "sequence" : "global_batch")
          .number("value", answer.value)
          .json("next", answer.next > 0 ? json_number(answer.next) : "null")
          .text("next_lacks", answer.next_lacks)
          .boolean("cut_short", answer.cut_short)
          .json("plan", to_json(answer.plan))
          .str());
}

std::string as_text(const LargestAnswer& answer, const Style& style) {
  std::string words =
      answer.of == LargestOf::sequence
          ? fmt::format("The longest sequence that fits has {} tokens.", grouped(answer.value))
          : fmt::format(
                "The largest global batch that fits at once is {}; larger ones are split "
                "into micro-batches.",
                counted(answer.value, "sample"));
  if (answer.cut_short)
    words +=
        " Larger ones were not all tried: the search was cut short; give it more `time_limit`.";
  else if (answer.next > 0)
    words +=
        fmt::format(" {} do not fit: {}.",
                    counted(answer.next, answer.of == LargestOf::sequence ? "token" : "sample"),
                    answer.next_lacks);
  return paragraph(words, style) + "\n" + as_text(answer.plan, style);
}

}  // namespace plait
