#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "app/request/objective.h"
#include "base/error.h"
#include "cli/flags/magnitudes.h"
#include "cli/flags/plan_arguments.h"

namespace plait {
namespace {

constexpr double kSecondsPerDay = 24 * kSecondsPerHour;

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

// 1 for "", 1e3 for "K" ... 1e15 for "P"; 0 for anything else.
double magnitude(std::string_view unit) {
  const int power = power_of_thousand(unit);
  return power < 0 ? 0 : std::pow(1000.0, power);
}

Setter into_count(std::optional<double>& into) {
  return [&into](const std::string& flag, const std::string& text) {
    static constexpr const char* kExample = "a number such as 250000, 300B or 1.5T";
    static constexpr std::string_view kUnits[] = {"tokens", "steps"};
    std::string bare = text;
    take_unit(bare, kUnits);
    const Amount amount = read_amount(flag, bare, kExample);
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
    const std::string unit =
        amount.unit.substr(std::min(amount.unit.find_first_not_of(' '), amount.unit.size()));
    const auto is = [&](std::initializer_list<std::string_view> names) {
      return std::ranges::find(names, unit) != names.end();
    };
    const double scale = is({"s"})                    ? 1
                         : is({"m", "min"})           ? 60
                         : is({"h", "hour", "hours"}) ? kSecondsPerHour
                         : is({"d", "day", "days"})   ? kSecondsPerDay
                         : is({"w", "week", "weeks"}) ? 7 * kSecondsPerDay
                         : is({"month", "months"})    ? 30 * kSecondsPerDay
                                                      : 0;
    if (scale == 0)
      throw InputError(flag, fmt::format("must be {}, is '{}'", kExample, text.substr(0, 40)));
    into = Seconds(amount.value * scale);
  };
}

// "0.9" or "90%"
Setter into_goodput(double& into) {
  return [&into](const std::string& flag, const std::string& text) {
    static constexpr const char* kExample = "above 0 and at most 1, such as 0.9 or 90%";
    const Amount amount = read_amount(flag, text, kExample);
    const double value = amount.unit == "%" ? amount.value / 100 : amount.value;
    if ((amount.unit != "%" && !amount.unit.empty()) || value > 1)
      throw InputError(flag, fmt::format("must be {}, is '{}'", kExample, text.substr(0, 40)));
    into = value;
  };
}

Setter into_budget(std::optional<Usd>& into) {
  return [&into](const std::string& flag, const std::string& text) {
    static constexpr const char* kExample = "an amount such as 20000USD, 20kUSD or 20000";
    std::string bare = text.starts_with('$') ? text.substr(1) : text;
    for (const std::string_view unit : {"USD", "usd", "dollars"})
      if (bare.ends_with(unit)) bare.resize(bare.size() - unit.size());
    const Amount amount = read_amount(flag, bare, kExample);
    if (magnitude(amount.unit) == 0)
      throw InputError(flag, fmt::format("must be {}, is '{}'", kExample, text.substr(0, 40)));
    into = Usd(amount.value * magnitude(amount.unit));
  };
}

// The cheapest training has the most tokens for a dollar.
Setter into_objective(Objective& objective) {
  Setter set = into_choice(objective.metric, metric_named, metric_names());
  return [set = std::move(set)](const std::string& flag, const std::string& text) {
    constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
        {"price", "cost"},
        {"cheapest", "cost"},
        {"throughput-per-dollar", "cost"},
        {"tokens-per-dollar", "cost"},
        {"throughput", "time"},
        {"speed", "time"},
        {"fastest", "time"}};
    for (const auto& [alias, name] : kAliases)
      if (text == alias) return set(flag, std::string(name));
    set(flag, text);
  };
}

}  // namespace

std::vector<Flag> training_flags(Objective& objective) {
  return {{.name = "--tokens",
           .value = "N",
           .help = "tokens of the whole training (300B, 1.5T): shows its time and price",
           .set = into_count(objective.tokens),
           .units = magnitudes_and({"tokens"})},
          {.name = "--steps",
           .value = "N",
           .help = "the same, in steps",
           .set = into_count(objective.steps),
           .hidden = {"--train-iters", "--max-steps"},
           .units = magnitudes_and({"steps"})},
          {.name = "--goodput",
           .value = "F",
           .help = "part of the time that is spent in steps that count, 0.9 or 90%; the rest goes "
                   "to checkpoints, restarts and repeated work (1)",
           .set = into_goodput(objective.goodput)}};
}

FlagGroup objective_flags(Objective& objective) {
  FlagGroup group{
      "Time and money",
      {{.name = "--objective",
        .value = "O",
        .help = "time: the fastest step; cost: the cheapest training, on some of the nodes if that "
                "saves; cost-time: the least product of both (time)",
        .set = into_objective(objective),
        .choices = as_strings(metric_names())},
       {.name = "--deadline",
        .value = "T",
        .help = "longest time of the training (10d, 36h, 2w); the cheapest plan within it is taken",
        .set = into_deadline(objective.deadline),
        .units = {"days", "day", "hours", "hour", "weeks", "week", "months", "month"}},
       {.name = "--budget",
        .value = "USD",
        .help =
            "highest price of the training (20000USD, 20k); the fastest plan within it is taken",
        .set = into_budget(objective.budget),
        .units = magnitudes_and({"USD", "usd", "dollars"})}}};
  for (Flag& flag : training_flags(objective)) group.flags.push_back(std::move(flag));
  return group;
}

}  // namespace plait
