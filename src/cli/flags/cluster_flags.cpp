#include "cli/flags/cluster_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace plait {
namespace {

constexpr int kMostNodes = 10'000;  // of one entry

std::string_view without_blanks(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// "p4d.24xlarge:0-8", "g5.24xlarge@east:4", "p4d.24xlarge:2-4:spot"
Offer read_offer(const std::string& flag, std::string_view text) {
  const auto fault = [&] {
    return InputError(
        flag, fmt::format("must be like p4d.24xlarge:0-8 (from none to 8 of them), "
                          "g5.24xlarge@east:4 (up to 4, in zone east) or p4d.24xlarge:0-8:spot, is "
                          "'{}'",
                          text.substr(0, 60)));
  };
  Offer offer;
  std::string_view rest = without_blanks(text);
  if (rest.ends_with(":spot")) {
    offer.spot = true;
    rest.remove_suffix(5);
  }
  const std::size_t colon = rest.rfind(':');
  if (colon == rest.npos || colon == 0) throw fault();
  offer.name = without_blanks(rest.substr(0, colon));
  const std::string_view range = without_blanks(rest.substr(colon + 1));
  const std::size_t dash = range.find('-');
  const auto number = [&](std::string_view digits) {
    int value = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || value < 0)
      throw fault();
    return value;
  };
  if (dash != range.npos) offer.least = number(range.substr(0, dash));
  offer.most = number(dash == range.npos ? range : range.substr(dash + 1));
  if (offer.least > offer.most || offer.most < 1 || offer.most > kMostNodes)
    throw InputError(flag, fmt::format("counts must ascend, from 0 to at most {}, in '{}'",
                                       kMostNodes, text.substr(0, 60)));
  return offer;
}

std::vector<std::string> words_of(const std::string& flag, const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, comma - begin));
    if (words.back().empty()) throw InputError(flag, "has an empty entry");
    begin = comma + 1;
  }
  return words;
}

}  // namespace

Setter into_offers(std::vector<Offer>& into) {
  return [&into](const std::string& flag, const std::string& text) {
    into.clear();
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      into.push_back(read_offer(flag, std::string_view(text).substr(begin, comma - begin)));
      begin = comma + 1;
    }
  };
}

Setter into_words(std::vector<std::string>& into) {
  return [&into](const std::string& flag, const std::string& text) {
    for (std::string& word : words_of(flag, text)) into.push_back(std::move(word));
  };
}

// "5" or "5-7" as first and last.
Setter into_devices(std::vector<std::pair<int, int>>& into) {
  return [&into](const std::string& flag, const std::string& text) {
    for (const std::string& word : words_of(flag, text)) {
      const char* end = word.data() + word.size();
      int first = 0;
      auto read = std::from_chars(word.data(), end, first);
      int last = first;
      if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-')
        read = std::from_chars(read.ptr + 1, end, last);
      if (read.ec != std::errc() || read.ptr != end)
        throw InputError(
            flag, fmt::format("must be ids such as 5,6 or 8-15, is '{}'", word.substr(0, 40)));
      into.emplace_back(first, last);
    }
  };
}

// "node2=0.5"
Setter into_slow(std::vector<SlowNode>& into) {
  return [&into](const std::string& flag, const std::string& text) {
    for (const std::string& word : words_of(flag, text)) {
      const std::size_t equals = word.rfind('=');
      double speed = 0;
      if (equals != word.npos) {
        const char* end = word.data() + word.size();
        const auto read = std::from_chars(word.data() + equals + 1, end, speed);
        if (read.ec != std::errc() || read.ptr != end) speed = 0;
      }
      if (!(speed >= 0.001 && speed <= 1000))
        throw InputError(flag, fmt::format("must be like node2=0.5, half as fast as before, is "
                                           "'{}'",
                                           word.substr(0, 40)));
      into.push_back({word.substr(0, equals), speed});
    }
  };
}

FlagGroup offer_flags(std::vector<Offer>& instances, bool& spot) {
  return {"What can be rented",
          {{.name = "--instances",
            .value = "LIST",
            .help = "p4d.24xlarge:0-8,g5.24xlarge@east:4: instances (plait instances) and "
                    "how many of each at most; add :spot for the spot price",
            .set = into_offers(instances),
            .required = true},
           {.name = "--spot",
            .value = "",
            .help = "all at their spot prices",
            .set = into_switch(spot)}}};
}

std::vector<FlagGroup> pareto_plan_flags(PlanArguments& arguments) {
  return without_flags(
      plan_flags(arguments),
      {"--cluster", "--clusterfile", "--device", "--top", "--output", "--objective", "--json",
       "--metis-args", "--cost-model", "--format", "--max-batch", "--max-seq", "--explain-search"});
}

FlagGroup change_flags(ReplanRequest& a) {
  return {"What changed",
          {{.name = "--lost",
            .value = "NODES",
            .help = "nodes that are gone, by name: node3,node7",
            .set = into_words(a.lost),
            .repeats = true},
           {.name = "--lost-devices",
            .value = "IDS",
            .help = "devices that are gone: 5,6 or 8-15",
            .set = into_devices(a.lost_devices),
            .repeats = true},
           {.name = "--slow",
            .value = "NODE=F",
            .help = "a node that computes at a fraction of its speed: node2=0.5",
            .set = into_slow(a.slow),
            .repeats = true},
           {.name = "--add",
            .value = "C",
            .help = "nodes that came, as the cluster shorthand has them: 2xA100-80GB:8",
            .set = [&a](const std::string&, const std::string& text) { a.add.push_back(text); },
            .repeats = true},
           {.name = "--restart",
            .value = "T",
            .help = "what a restart takes besides moving state (60s)",
            .set = [&a](const std::string& flag, const std::string& text) {
              a.restart = Seconds(parse_seconds(flag, text));
            }}}};
}

std::vector<FlagGroup> replan_plan_flags(PlanArguments& arguments) {
  return only_flags(plan_flags(arguments),
                    {"--catalogue", "--planner", "--time-limit", "--threads", "--json", "--output",
                     "--memory-limit", "--reserve", "--offload"});
}

void take_plan_arguments(const PlanArguments& arguments, ReplanRequest& request) {
  request.catalogue = arguments.request.source.catalogue;
  request.planner = arguments.request.planner;
  request.search = arguments.request.search;
  request.search.keep = 1;
  request.memory = arguments.request.source.memory;
}

}  // namespace plait
