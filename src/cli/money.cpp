#include "cli/money.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "io/format/json_writer.h"
#include "report/quantities.h"

namespace plait {
namespace {

constexpr double kMostSteps = 1e15;
constexpr double kSecondsPerDay = 24 * kSecondsPerHour;

const std::vector<std::string_view>& objective_names() {
  static const std::vector<std::string_view> names{"time", "cost", "cost-time"};
  return names;
}

std::optional<Objective> objective_named(std::string_view name) {
  const auto it = std::ranges::find(objective_names(), name);
  if (it == objective_names().end()) return std::nullopt;
  return static_cast<Objective>(it - objective_names().begin());
}

// A positive number and what follows it.
struct Amount {
  double value = 0;
  std::string unit;
};

Amount read_amount(const std::string& flag, const std::string& text, const char* example) {
  Amount amount;
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, amount.value);
  if (fault != std::errc() || !std::isfinite(amount.value) || amount.value <= 0)
    throw InputError(flag, fmt::format("must be {}, is '{}'", example, text.substr(0, 40)));
  amount.unit = std::string(stop, end);
  return amount;
}

// 1 for "", 1e3 for "K" ... 1e15 for "P"; 0 for what is none of them.
double magnitude(std::string_view unit) {
  if (unit.empty()) return 1;
  if (unit.size() > 1) return 0;
  static constexpr std::string_view kLetters = "KMBTP";
  const std::size_t at = unit == "k" ? 0 : unit == "G" ? 2 : kLetters.find(unit[0]);
  return at == kLetters.npos ? 0 : std::pow(1000.0, static_cast<double>(at) + 1);
}

Setter into_count(std::optional<double>& into) {
  return [&into](const std::string& flag, const std::string& text) {
    static constexpr const char* kExample = "a number such as 250000, 300B or 1.5T";
    const Amount amount = read_amount(flag, text, kExample);
    const double value = amount.value * magnitude(amount.unit);
    if (!(value >= 1 && value <= 1e18))
      throw InputError(flag, fmt::format("must be {}, is '{}'", kExample, text.substr(0, 40)));
    into = std::ceil(value);
  };
}

Setter into_deadline(std::optional<Seconds>& into) {
  return [&into](const std::string& flag, const std::string& text) {
    static constexpr const char* kExample = "a time such as 10d, 36h or 2w";
    const Amount amount = read_amount(flag, text, kExample);
    const double scale = amount.unit == "s"   ? 1
                         : amount.unit == "m" ? 60
                         : amount.unit == "h" ? kSecondsPerHour
                         : amount.unit == "d" ? kSecondsPerDay
                         : amount.unit == "w" ? 7 * kSecondsPerDay
                                              : 0;
    if (scale == 0)
      throw InputError(flag, fmt::format("must be {}, is '{}'", kExample, text.substr(0, 40)));
    into = Seconds(amount.value * scale);
  };
}

Setter into_budget(std::optional<Usd>& into) {
  return [&into](const std::string& flag, const std::string& text) {
    static constexpr const char* kExample = "an amount such as 20000USD, 20kUSD or 20000";
    std::string bare = text.starts_with('$') ? text.substr(1) : text;
    for (const std::string_view unit : {"USD", "usd"})
      if (bare.ends_with(unit)) bare.resize(bare.size() - unit.size());
    const Amount amount = read_amount(flag, bare, kExample);
    if (magnitude(amount.unit) == 0)
      throw InputError(flag, fmt::format("must be {}, is '{}'", kExample, text.substr(0, 40)));
    into = Usd(amount.value * magnitude(amount.unit));
  };
}

// "$120 (12.0 %) more than the budget of $1,000"
std::string over_budget(Usd price, Usd budget) {
  return fmt::format("{} ({}) more than the budget of {}", in_words(price - budget),
                     percent(price / budget - 1), in_words(budget));
}

std::string over_deadline(Seconds time, Seconds deadline) {
  return fmt::format("{} ({}) more than the deadline of {}", long_time(time - deadline),
                     percent(time / deadline - 1), long_time(deadline));
}

double score(Objective goal, const MixPoint& point) {
  switch (goal) {
    case Objective::time:
      return point.step().value;
    case Objective::cost:
      return point.price().value;
    case Objective::cost_time:
      return point.price().value * point.step().value;
  }
  return 0;
}

// Why no point of the front, cheapest and slowest first, is within the limits.
std::string why_not(const Wishes& wishes, double steps, const std::vector<MixPoint>& front) {
  const auto time_of = [&](const MixPoint& p) { return steps * p.step(); };
  const auto price_at = [&](const MixPoint& p) { return steps * p.price(); };
  const MixPoint& cheapest = front.front();
  const MixPoint& fastest = front.back();
  std::string why;
  if (wishes.deadline && time_of(fastest) > *wishes.deadline)
    why += fmt::format("the fastest training takes {}, {}", long_time(time_of(fastest)),
                       over_deadline(time_of(fastest), *wishes.deadline));
  if (wishes.budget && price_at(cheapest) > *wishes.budget)
    why +=
        fmt::format("{}the cheapest training costs {}, {}", why.empty() ? "" : "; ",
                    in_words(price_at(cheapest)), over_budget(price_at(cheapest), *wishes.budget));
  if (!why.empty()) return why;
  // Each limit alone can be met.
  const auto in_time = std::ranges::find_if(
      front, [&](const MixPoint& p) { return time_of(p) <= *wishes.deadline; });
  const auto beyond =
      std::ranges::find_if(front, [&](const MixPoint& p) { return price_at(p) > *wishes.budget; });
  return fmt::format(
      "deadline and budget cannot be met together: the cheapest training within the deadline costs "
      "{}, {}; the fastest within the budget takes {}, {}",
      in_words(price_at(*in_time)), over_budget(price_at(*in_time), *wishes.budget),
      long_time(time_of(*(beyond - 1))), over_deadline(time_of(*(beyond - 1)), *wishes.deadline));
}

}  // namespace

bool Wishes::need_prices() const {
  return budget || deadline || (objective && *objective != Objective::time);
}

Objective Wishes::goal() const {
  if (objective) return *objective;
  return deadline && !budget ? Objective::cost : Objective::time;
}

std::vector<Flag> training_flags(Wishes& wishes) {
  return {{.name = "--tokens",
           .value = "N",
           .help = "tokens of the whole training (300B, 1.5T): shows its time and price",
           .set = into_count(wishes.tokens)},
          {.name = "--steps",
           .value = "N",
           .help = "the same, in steps",
           .set = into_count(wishes.steps)}};
}

FlagGroup wish_flags(Wishes& wishes) {
  FlagGroup group{
      "Time and money",
      {{.name = "--objective",
        .value = "O",
        .help = "time: the fastest step; cost: the cheapest training, on some of the nodes if that "
                "saves; cost-time: the least product of both (time)",
        .set = into_choice(wishes.objective, objective_named, objective_names()),
        .choices = as_strings(objective_names())},
       {.name = "--deadline",
        .value = "T",
        .help = "training may take so long (10d, 36h, 2w); of what meets it, the cheapest",
        .set = into_deadline(wishes.deadline)},
       {.name = "--budget",
        .value = "USD",
        .help = "training may cost so much (20000USD, 20k); of what meets it, the fastest",
        .set = into_budget(wishes.budget)}}};
  for (Flag& flag : training_flags(wishes)) group.flags.push_back(std::move(flag));
  return group;
}

void check_wishes(const Wishes& wishes, const Problem& problem) {
  if (wishes.tokens && wishes.steps) throw InputError("--steps", "contradicts --tokens; give one");
  const char* limit = wishes.deadline ? "--deadline" : "--budget";
  if ((wishes.deadline || wishes.budget) && !wishes.tokens && !wishes.steps)
    throw InputError(limit, "needs to know how long the training is: give --tokens or --steps");
  const auto steps = steps_of(wishes, problem);
  if (steps && *steps > kMostSteps)
    throw InputError(wishes.tokens ? "--tokens" : "--steps",
                     fmt::format("is {:.3g} steps, more than {:.0e}", *steps, kMostSteps));
  const std::string unpriced = unpriced_node(problem.cluster);
  if (!wishes.need_prices() || unpriced.empty()) return;
  throw InputError(wishes.objective && *wishes.objective != Objective::time ? "--objective" : limit,
                   fmt::format("needs the price of every node, and that of '{}' is unknown; name "
                               "cloud instances (plait instances) or give price_usd_per_hour in a "
                               "cluster file",
                               unpriced));
}

std::optional<double> steps_of(const Wishes& wishes, const Problem& problem) {
  if (wishes.tokens) return steps_for_tokens(problem, *wishes.tokens);
  return wishes.steps;
}

std::vector<MixPoint> wished_for(const Wishes& wishes, const Problem& problem,
                                 const std::vector<MixPoint>& front, std::string& why) {
  const double steps = steps_of(wishes, problem).value_or(1);
  std::vector<MixPoint> allowed;
  for (const MixPoint& point : front) {
    if (wishes.deadline && steps * point.step() > *wishes.deadline) continue;
    if (wishes.budget && steps * point.price() > *wishes.budget) continue;
    allowed.push_back(point);
  }
  const Objective goal = wishes.goal();
  std::ranges::stable_sort(allowed, {}, [goal](const MixPoint& p) { return score(goal, p); });
  if (allowed.empty() && !front.empty()) why = why_not(wishes, steps, front);
  return allowed;
}

std::string training_json(const Training& training) {
  return JsonObject()
      .number("steps", training.steps)
      .number("time_s", training.time.value)
      .json("usd", training.price > Usd(0) ? json_number(training.price.value) : "null")
      .str();
}

std::string training_in_words(const Training& training) {
  std::string out =
      fmt::format("{} take {}", counted(training.steps, "step"), long_time(training.time));
  if (training.price > Usd(0)) out += fmt::format(" and cost {}", in_words(training.price));
  return out + ".";
}

std::string long_time(Seconds time) {
  if (time.value >= 2 * kSecondsPerDay)
    return fmt::format("{:.{}f} days", time.value / kSecondsPerDay,
                       time.value < 100 * kSecondsPerDay ? 2 : 0);
  if (time.value >= kSecondsPerHour) return fmt::format("{:.2f} h", time.value / kSecondsPerHour);
  return in_words(time);
}

}  // namespace plait
