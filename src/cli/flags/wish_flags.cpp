#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "cli/flags/magnitudes.h"
#include "cli/flags/plan_arguments.h"

namespace plait {
namespace {

constexpr int kMaxRank = 65536;
constexpr int kMostFrozen = 1'000'000;

// A number from the start of a text, and what follows it.
struct Number {
  double value = 0;
  std::string rest;
  bool good = false;
};

Number read_number(const std::string& text) {
  Number out;
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, out.value);
  out.good = fault == std::errc() && std::isfinite(out.value);
  if (out.good) out.rest = std::string(stop, end);
  return out;
}

// "0.1", "10%" or "4GiB"
Setter into_reserve(MemoryRule& rule) {
  return [&rule](const std::string& flag, const std::string& text) {
    const Number number = read_number(text);
    const bool part = number.good && (number.rest.empty() || number.rest == "%");
    const double value = number.rest == "%" ? number.value / 100 : number.value;
    if (part && value >= 0 && value < 1) {
      rule.reserve = value;
      return;
    }
    if (part || !number.good)
      throw InputError(flag, fmt::format("must be below 1 (0.1 or 10% of each device) or a size "
                                         "such as 4GiB, is '{}'",
                                         text.substr(0, 40)));
    rule.reserved = Bytes(parse_size(flag, text));
  };
}

// "H100=2.5,A100=1.8"
Setter into_prices(std::vector<StatedPrice>& into) {
  return [&into](const std::string& flag, const std::string& text) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      const std::string entry = text.substr(begin, comma - begin);
      const std::size_t equals = entry.find('=');
      std::string amount = equals == entry.npos ? "" : entry.substr(equals + 1);
      if (amount.starts_with('$')) amount.erase(0, 1);
      for (const std::string_view unit : {"/h", "USD", "usd"})
        if (amount.ends_with(unit)) amount.resize(amount.size() - unit.size());
      const Number number = read_number(amount);
      if (equals == 0 || !number.good || !number.rest.empty() || number.value <= 0 ||
          number.value > 1e6)
        throw InputError(flag, fmt::format("must be like H100=2.5 (USD an hour for one GPU) or "
                                           "p5.48xlarge=40 (for one node), is '{}'",
                                           entry.substr(0, 40)));
      into.push_back({entry.substr(0, equals), UsdPerSecond(number.value / kSecondsPerHour)});
      begin = comma + 1;
    }
  };
}

Setter into_offload(std::optional<double>& into) {
  return [&into](const std::string& flag, const std::string& text) {
    double value = 1;
    if (text == "none") value = 0;
    if (text != "optimizer" && text != "none") into_fraction(value)(flag, text);
    into = value;
  };
}

}  // namespace

Setter into_batch(PlanRequest& request, int most) {
  return [&request, most](const std::string& flag, const std::string& text) {
    static constexpr std::string_view kTokens[] = {"tokens", "token", "tok"};
    static constexpr std::string_view kSamples[] = {"samples", "sample", "sequences"};
    std::string amount = text;
    const bool tokens = take_unit(amount, kTokens);
    if (!tokens && take_unit(amount, kSamples))
      return into_integer(request.source.job.global_batch, 1, most)(flag, amount);
    const Number number = read_number(amount);
    const int power = power_of_thousand(number.rest);
    if (!tokens && number.good && power > 0)
      throw InputError(flag, fmt::format("are '{}' tokens or samples? {}tokens are tokens; samples "
                                         "are a whole number, such as 512",
                                         text.substr(0, 40), amount.substr(0, 40)));
    if (!tokens) return into_integer(request.source.job.global_batch, 1, most)(flag, text);
    if (!number.good || power < 0 || number.value <= 0 || number.value > 1e15)
      throw InputError(flag, fmt::format("must be samples (512) or tokens (4Mtokens), is '{}'",
                                         text.substr(0, 40)));
    request.source.batch_tokens = {number.value * std::pow(1000.0, power),
                                   number.value * std::pow(1024.0, power), text};
  };
}

std::vector<Flag> memory_flags(MemoryRule& rule) {
  return {{.name = "--memory-limit",
           .value = "SIZE",
           .help = "what a plan may use of each device, whatever it has: 12000MB, 70GiB",
           .set = into_size(rule.limit),
           .hidden = {"--max-memory", "--gpu-memory"}},
          {.name = "--reserve",
           .value = "R",
           .help = "what is left to the driver and to fragmentation: 0.1, 10% or 4GiB of each "
                   "device (0.06; 0 with --memory-limit)",
           .set = into_reserve(rule)}};
}

Flag price_flag(std::vector<StatedPrice>& prices) {
  return {.name = "--price",
          .value = "NAME=USD",
          .help = "what you pay an hour: H100=2.5 for one GPU, p5.48xlarge=40 for one node",
          .set = into_prices(prices),
          .hidden = {"--prices", "--gpu-price"},
          .repeats = true};
}

Flag offload_flag(std::optional<double>& into) {
  return {.name = "--offload",
          .value = "F",
          .help =
              "part of the optimizer state that is kept and updated in host memory: 1, 0.5 or "
              "none; what it costs is counted (none)",
          .set = into_offload(into),
          .hidden = {"--optimizer-cpu-offload-fraction", "--optimizer-offload-fraction",
                     "--offload-optimizer"}};
}

FlagGroup tuning_flags(ProblemSource& source) {
  return {"Which part of the model is trained",
          {{.name = "--lora",
            .value = "RANK",
            .help = "train adapters of this rank beside every product of a layer, not the weights",
            .set =
                [&source](const std::string& flag, const std::string& text) {
                  into_integer(source.job.adapter_rank, 1, kMaxRank)(flag, text);
                  source.job.adapters = true;
                },
            .hidden = {"--lora-rank", "--lora-r", "--lora-dim"}},
           {.name = "--qlora",
            .value = "RANK",
            .help = "the same beside weights that are kept in 4 bits (NF4), which PyTorch FSDP and "
                    "DeepSpeed run; as fsdp runs it when no --framework is named",
            .set =
                [&source](const std::string& flag, const std::string& text) {
                  if (source.job.adapters && !source.job.four_bit_weights)
                    throw InputError(flag, "says the same as --lora, which is also given");
                  into_integer(source.job.adapter_rank, 1, kMaxRank)(flag, text);
                  source.job.adapters = source.job.four_bit_weights = true;
                },
            .hidden = {"--qlora-rank"}},
           {.name = "--freeze",
            .value = "N",
            .help = "the first N layers and the embedding are not trained: they run forward only",
            .set = into_integer(source.frozen_layers, 1, kMostFrozen),
            .hidden = {"--freeze-layers"}}}};
}

}  // namespace plait
