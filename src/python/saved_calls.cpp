// Functions of saved plans: the class of them, estimate, explain, check, diff, export.
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "app/request/request_error.h"
#include "app/request/search_request.h"
#include "app/saved/check.h"
#include "app/saved/configured.h"
#include "app/saved/diff.h"
#include "app/saved/estimate.h"
#include "app/saved/explain.h"
#include "app/saved/export.h"
#include "base/version.h"
#include "cli/flags/configured_flags.h"
#include "cli/flags/export_flags.h"
#include "cli/flags/plan_arguments.h"
#include "plan/describe.h"
#include "python/answered.h"

namespace plait {
namespace {

namespace nb = nanobind;

Setter into_seconds(Seconds& into) {
  return [&into](const std::string& flag, const std::string& text) {
    into = Seconds(parse_seconds(flag, text));
  };
}

template <typename Answer>
std::shared_ptr<const Answer> kept(Answer answer) {
  return std::make_shared<const Answer>(std::move(answer));
}

std::vector<FlagGroup> estimate_keywords(EstimateRequest& request) {
  std::vector<Flag> flags = memory_flags(request.memory);
  flags.push_back(price_flag(request.prices));
  return {{"", std::move(flags)}};
}

Answered estimate(const SavedPlan& saved, const Keywords& keywords) {
  EstimateRequest request{.name = "plan", .file = file_of(saved)};
  set_keywords(estimate_keywords(request), keywords);
  const auto found = kept(run_to_the_end([&] { return answer(request); }));
  Answered out = answered(found);
  out.picture = [saved] { return timeline(saved); };
  out.reason = in_keywords(reason(*found));
  return out;
}

// A configuration of another program, priced; its plan and, where there is one, the faster plan.
std::vector<FlagGroup> configured_keywords(ConfiguredArguments& arguments,
                                           ConfiguredEstimateRequest& request) {
  std::vector<Flag> flags = configured_flags(arguments);
  for (Flag& flag : memory_and_price_flags(arguments)) flags.push_back(std::move(flag));
  flags.push_back({.name = "--time-limit",
                   .value = "T",
                   .help = "for the search of a faster plan (60s)",
                   .set = into_seconds(request.time_limit)});
  flags.push_back({.name = "--threads",
                   .value = "N",
                   .help = "the answer does not depend on it (all cores)",
                   .set = into_integer(request.threads, 1, 1024)});
  return {{"", std::move(flags)}};
}

Answered estimate_from(const std::string& from, const std::string& path, const Keywords& keywords) {
  ConfiguredArguments arguments;
  ConfiguredEstimateRequest request;
  request.threads = usual_threads();
  const auto& forms = configuration_forms();
  if (std::ranges::find(forms, from) == forms.end())
    throw InputError("program", not_one_of(from, forms));
  set_keywords(configured_keywords(arguments, request), keywords);
  request.configured = configured_request(from, path, arguments);
  std::optional<ConfiguredEstimate> found;
  const bool pressed =
      run_listening({}, [&](const Session& session) { found = answer(request, session); });
  const auto all = kept(std::move(*found));
  Answered out = answered(all);
  const std::shared_ptr<const Problem> problem(all, &all->estimate.file.problem);
  out.plans.push_back({problem, all->estimate.file.plan, program_version(), {}});
  if (all->faster) {
    const std::shared_ptr<const Problem> improved(all, &all->improved);
    out.plans.push_back({improved, all->faster->plan, program_version(), all->faster->cost});
  }
  out.picture = [saved = out.plans.front()] { return timeline(saved); };
  out.reason = in_keywords(reason(all->estimate));
  out.interrupted = pressed;
  return out;
}

std::vector<FlagGroup> check_keywords(MemoryRule& rule) { return {{"", memory_flags(rule)}}; }

Answered check(const SavedPlan& saved, const Keywords& keywords) {
  CheckRequest request{.name = "plan", .file = file_of(saved)};
  set_keywords(check_keywords(request.memory), keywords);
  return answered(kept(run_to_the_end([&] { return answer(request); })));
}

std::vector<FlagGroup> explain_keywords(ExplainRequest& request) {
  return {{"",
           {{.name = "--time-limit",
             .value = "T",
             .help = "for each search among other plans (3s)",
             .set = into_seconds(request.time_limit)},
            {.name = "--threads",
             .value = "N",
             .help = "the answer does not depend on it (all cores)",
             .set = into_integer(request.threads, 1, 1024)}}}};
}

Answered explain(const SavedPlan& saved, const Keywords& keywords) {
  ExplainRequest request{.file = file_of(saved)};
  request.threads = usual_threads();
  set_keywords(explain_keywords(request), keywords);
  std::optional<Explanation> found;
  const bool pressed =
      run_listening({}, [&](const Session& session) { found = answer(request, session); });
  Answered out = answered(kept(std::move(*found)));
  out.picture = [saved] { return timeline(saved); };
  out.interrupted = pressed;
  return out;
}

Answered diff(const SavedPlan& first, const SavedPlan& second) {
  const DiffRequest request{{"first", "second"}, {file_of(first), file_of(second)}};
  return answered(kept(run_to_the_end([&] { return answer(request); })));
}

// The files are in the answer, so that they need not be written.
std::vector<FlagGroup> export_keywords(ExportRequest& request) {
  FlagGroup group = export_flags(request);
  for (Flag& flag : group.flags)
    if (flag.name == "--output") flag.required = false;
  return {std::move(group)};
}

Answered export_saved(const SavedPlan& saved, const Keywords& keywords) {
  ExportRequest request{.name = "plan", .file = file_of(saved), .to = ""};
  request.threads = usual_threads();
  set_keywords(export_keywords(request), keywords);
  std::optional<ExportAnswer> found;
  const bool pressed =
      run_listening({}, [&](const Session& session) { found = answer(request, session); });
  if (pressed) raise_interrupt();
  const auto all = kept(std::move(*found));
  Answered out{.json = [all] { return in_keywords(to_json(*all)); },
               .text = [all, folder = request.folder](
                           const Style&) { return in_keywords(as_text(*all, folder)); }};
  const std::shared_ptr<const Problem> problem(all, &all->file.problem);
  if (all->written()) out.plans.push_back({problem, all->file.plan, all->file.made_by, {}});
  if (all->nearest)
    out.nearest =
        SavedPlan{problem, all->nearest->plan.plan, all->file.made_by, all->nearest->plan.cost};
  for (const ExportedFile& file : all->files) out.files.emplace_back(file.name, file.text);
  out.reason = in_keywords(reason(*all));
  return out;
}

template <typename Function>
auto unlocked(const Function& function) {
  const nb::gil_scoped_release release;
  return function();
}

}  // namespace

void add_saved_calls(nb::module_& module) {
  nb::class_<SavedPlan>(module, "SavedPlan")
      .def_static(
          "read",
          [](const std::string& path) { return unlocked([&] { return read_saved_plan(path); }); })
      .def_static(
          "read_any",
          [](const std::string& path) { return unlocked([&] { return read_any_plan(path); }); })
      .def(
          "__eq__", [](const SavedPlan& a, const SavedPlan& b) { return a == b; },
          nb::is_operator())
      .def("describe", [](const SavedPlan& plan) { return describe(plan.plan); })
      .def("file", [](const SavedPlan& plan) { return unlocked([&] { return file_text(plan); }); })
      .def("json",
           [](const SavedPlan& plan) { return unlocked([&] { return ranked_json(plan); }); })
      .def("text",
           [](const SavedPlan& plan, int columns) {
             return unlocked([&] { return as_text(plan, Style{.columns = columns}); });
           })
      .def("timeline",
           [](const SavedPlan& plan) { return unlocked([&] { return timeline(plan); }); })
      .def("trace", [](const SavedPlan& plan) { return unlocked([&] { return trace(plan); }); });
  module.def("estimate", estimate);
  module.def("estimate_from", estimate_from);
  module.def("check", check);
  module.def("explain", explain);
  module.def("diff", diff);
  module.def("export_plan", export_saved);
  module.def("estimate_keywords", [] {
    EstimateRequest request;
    return keyword_entries(estimate_keywords(request));
  });
  module.def("estimate_from_keywords", [] {
    ConfiguredArguments arguments;
    ConfiguredEstimateRequest request;
    return keyword_entries(configured_keywords(arguments, request));
  });
  module.def("check_keywords", [] {
    MemoryRule rule;
    return keyword_entries(check_keywords(rule));
  });
  module.def("export_keywords", [] {
    ExportRequest request;
    return keyword_entries(export_keywords(request));
  });
  module.def("explain_keywords", [] {
    ExplainRequest request;
    return keyword_entries(explain_keywords(request));
  });
}

}  // namespace plait
