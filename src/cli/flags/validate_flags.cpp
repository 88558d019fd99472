#include "cli/flags/validate_flags.h"

#include "base/error.h"

namespace plait {
namespace {

Setter into_grouping(RunGrouping& into) {
  return [&into](const std::string& flag, const std::string& text) {
    static const std::vector<std::string_view> kNames{"source", "gpu"};
    if (text != "source" && text != "gpu") refuse_choice(flag, text, kNames);
    into = text == "gpu" ? RunGrouping::device : RunGrouping::source;
  };
}

}  // namespace

FlagGroup validate_flags(ValidateRequest& a) {
  return {
      "Flags",
      {{.name = "--runs",
        .value = "FILE",
        .help = "CSV of measured runs (default: a small set that is built in)",
        .set = into_text(a.runs)},
       {.name = "--by",
        .value = "WHAT",
        .help = "one line for each source or for each gpu (default: source)",
        .set = into_grouping(a.by),
        .choices = {"source", "gpu"}},
       {.name = "--grade",
        .value = "LETTERS",
        .help = "only rows of these grades: A, AB (default: all)",
        .set = into_text(a.grades)},
       {.name = "--least-step",
        .value = "TIME",
        .help = "leave out steps shorter than this: 50ms",
        .set = [&a](
                   const std::string& flag,
                   const std::string& text) { a.least_step = Seconds(parse_seconds(flag, text)); }},
       {.name = "--literal",
        .value = "",
        .help = "take every column as it stands, without the known corrections",
        .set = into_switch(a.literal)},
       {.name = "--profile",
        .value = "PATH",
        .help = "measurements, used for the rows whose model and device they cover",
        .set = into_text(a.profile)},
       {.name = "--catalogue",
        .value = "FILE",
        .help = "more devices, or other constants for known ones",
        .set = [&a](const std::string&, const std::string& text) { a.catalogue.push_back(text); },
        .repeats = true}}};
}

}  // namespace plait
