// Functions that search: plan, compare, pareto, replan.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "app/clusters/pareto.h"
#include "app/clusters/replan.h"
#include "app/plan/compare.h"
#include "app/plan/largest.h"
#include "app/plan/plan.h"
#include "cli/flags/cluster_flags.h"
#include "cli/flags/plan_arguments.h"
#include "python/answered.h"

namespace plait {
namespace {

namespace nb = nanobind;

std::vector<FlagGroup> plan_keywords(PlanArguments& arguments) {
  return without_flags(plan_flags(arguments), {"--json", "--output", "--format"});
}

std::vector<FlagGroup> compare_keywords(PlanArguments& arguments) {
  return without_flags(plan_keywords(arguments),
                       {"--planner", "--cost-model", "--top", "--max-batch", "--max-seq"});
}

// Plans of a problem that `answer` holds inside `plan`.
template <typename Answer>
Answered with_plans(const std::shared_ptr<const Answer>& answer, const PlanAnswer& plan) {
  Answered out = answered(answer);
  for (const RankedPlan& ranked : plan.result.plans)
    out.plans.push_back(plan_of(answer, plan.problem, ranked));
  if (plan.no_plan && plan.no_plan->nearest)
    out.nearest = plan_of(answer, plan.problem, *plan.no_plan->nearest);
  if (!plan.found())
    out.text = [answer, &plan](const Style& style) {
      return in_keywords(nearest_text(plan, style));
    };
  out.reason = in_keywords(reason(*answer));
  return out;
}

// An answer, whether Ctrl-C was pressed meanwhile, and how long it took.
template <typename Answer>
struct Searched {
  std::shared_ptr<const Answer> answer;
  bool pressed = false;
  double seconds = 0;
};

template <typename Request>
auto searched(const Request& request, const Callbacks& callbacks) {
  using Answer = decltype(answer(request, Session{}));
  const auto out = std::make_shared<Answer>();
  Searched<Answer> all{out};
  all.pressed = run_listening(callbacks, [&](const Session& session) {
    const Stopwatch watch;
    *out = answer(request, session);
    all.seconds = watch.elapsed().value;
  });
  return all;
}

// What the caller gets of it. Ctrl-C that came too late to cut anything short is passed on.
template <typename Answer>
Answered finished(Answered out, const Searched<Answer>& search, bool interrupted) {
  if (search.pressed && !interrupted) raise_interrupt();
  out.interrupted = interrupted;
  out.seconds = search.seconds;
  return out;
}

Answered plan(const Keywords& keywords, nb::object on_improvement, nb::object on_progress) {
  PlanArguments arguments;
  set_keywords(plan_keywords(arguments), keywords);
  const Callbacks callbacks{std::move(on_improvement), std::move(on_progress)};
  if (arguments.largest) {
    const auto found = searched(LargestRequest{arguments.request, *arguments.largest}, callbacks);
    return finished(with_plans(found.answer, found.answer->plan), found,
                    found.answer->plan.interrupted);
  }
  const auto found = searched(arguments.request, callbacks);
  return finished(with_plans(found.answer, *found.answer), found, found.answer->interrupted);
}

Answered compare(const Keywords& keywords, nb::object on_improvement, nb::object on_progress) {
  PlanArguments arguments;
  set_keywords(compare_keywords(arguments), keywords);
  const auto found = searched(CompareRequest{arguments.request},
                              {std::move(on_improvement), std::move(on_progress)});
  const CompareAnswer& all = *found.answer;
  Answered out = answered(found.answer);
  for (const PlannerResult& entry : all.planners)
    if (entry.found())
      out.plans.push_back(plan_of(found.answer, all.problem, entry.result.plans.front()));
  return finished(std::move(out), found, found.pressed);
}

// What `pareto` is asked besides the fields of a plan.
struct ParetoArguments {
  PlanArguments plan;
  std::vector<Offer> instances;
  bool spot = false;
};

std::vector<FlagGroup> pareto_keywords(ParetoArguments& arguments) {
  std::vector<FlagGroup> groups = pareto_plan_flags(arguments.plan);
  groups.push_back(offer_flags(arguments.instances, arguments.spot));
  return groups;
}

Answered pareto(const Keywords& keywords, nb::object on_improvement, nb::object on_progress) {
  ParetoArguments arguments;
  set_keywords(pareto_keywords(arguments), keywords);
  const auto found =
      searched(ParetoRequest{arguments.plan.request, arguments.instances, arguments.spot},
               {std::move(on_improvement), std::move(on_progress)});
  Answered out = answered(found.answer);
  out.picture = [answer = found.answer] { return as_svg(*answer); };
  out.reason = in_keywords(reason(*found.answer));
  return finished(std::move(out), found, found.answer->interrupted);
}

std::vector<FlagGroup> replan_keywords(PlanArguments& arguments, ReplanRequest& request) {
  std::vector<FlagGroup> groups = replan_plan_flags(arguments);
  groups.push_back(change_flags(request));
  return without_flags(groups, {"--json", "--output"});
}

Answered replan_saved(const SavedPlan& before, const Keywords& keywords, nb::object on_improvement,
                      nb::object on_progress) {
  PlanArguments arguments;
  ReplanRequest request;
  set_keywords(replan_keywords(arguments, request), keywords);
  check_change(request);
  request.before = file_of(before);
  take_plan_arguments(arguments, request);
  const auto found = searched(request, {std::move(on_improvement), std::move(on_progress)});
  const ReplanAnswer& all = *found.answer;
  Answered out = answered(found.answer);
  if (all.found()) out.plans.push_back(plan_of(found.answer, all.after, *all.result.plan));
  if (all.no_plan && all.no_plan->nearest)
    out.nearest = plan_of(found.answer, all.after, *all.no_plan->nearest);
  out.reason = in_keywords(reason(all));
  return finished(std::move(out), found, all.interrupted);
}

}  // namespace

void add_plan_calls(nb::module_& module) {
  const auto search = [&](const char* name, auto* call) {
    module.def(name, call, nb::arg("keywords"), nb::arg("on_improvement") = nb::none(),
               nb::arg("on_progress") = nb::none());
  };
  search("plan", plan);
  search("compare", compare);
  search("pareto", pareto);
  module.def("replan", replan_saved, nb::arg("before"), nb::arg("keywords"),
             nb::arg("on_improvement") = nb::none(), nb::arg("on_progress") = nb::none());
  module.def("plan_keywords", [] {
    PlanArguments arguments;
    return keyword_entries(plan_keywords(arguments));
  });
  module.def("compare_keywords", [] {
    PlanArguments arguments;
    return keyword_entries(compare_keywords(arguments));
  });
  module.def("pareto_keywords", [] {
    ParetoArguments arguments;
    return keyword_entries(pareto_keywords(arguments));
  });
  module.def("replan_keywords", [] {
    PlanArguments arguments;
    ReplanRequest request;
    return keyword_entries(replan_keywords(arguments, request));
  });
}

}  // namespace plait
