#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/plan/advice.h"
#include "app/plan/search_log.h"
#include "app/request/search_request.h"
#include "app/request/session.h"
#include "cost/price.h"
#include "export/exporter.h"
#include "report/table.h"
#include "search/papers/aceso_optimum.h"
#include "search/papers/metis_optimum.h"

namespace plait {

// Find the best plans for a model on a cluster.
struct PlanRequest : SearchRequest {
  std::string format;  // plans in the words of another program (export/exporter.h); "" = none
  // Whose step time is to be the least: plait, metis, aceso; "" = as fits `format`.
  std::string cost_model;
  bool explain_search = false;  // show what each pass of the search took and gave
};
const std::vector<std::string_view>& cost_model_names();

// A way to run the same training that the request does not ask for.
struct OtherWay {
  std::string where;    // "plait's own runtime"
  std::string request;  // what asks for it: "`framework` plait"
  RankedPlan plan;
};

struct PlanAnswer {
  Problem problem;
  SearchOptions options;  // of the search, with the pins in the model's own units
  SearchResult result;    // no plans: `no_plan` or `missed` says why
  std::vector<std::string> warnings;
  Seconds elapsed;
  bool interrupted = false;
  bool explain_search = false;  // as requested

  std::vector<OtherWay> other_ways;  // faster ones, or ones that need fewer devices

  std::vector<std::string> remarks;  // sentences: on a launch script, on programs that run the plan

  std::optional<TrainingLength> length;  // of the whole training
  std::int64_t mixes = 0;  // of nodes that were compared; 0 = all nodes were used at will
  // Costs by Metis' formula, where plans are the best by it; one for each plan of the result.
  std::optional<std::vector<MetisTerms>> metis_costs;
  // The same by Aceso's.
  std::optional<std::vector<AcesoCost>> aceso_costs;
  std::vector<SearchEvent> log;  // what the search found, and when

  std::optional<NoPlan> no_plan;
  std::string missed;                     // by how much limits of time and money are missed
  std::optional<ExportedPlans> exported;  // where a format was asked for

  bool found() const { return !result.plans.empty(); }
  // How far the best plan may be from the fastest that is possible; nothing without a bound.
  std::optional<double> gap() const;
};

// RequestError and InputError when the request or what it names is wrong.
PlanAnswer answer(const PlanRequest& request, const Session& session);

// Why there is no plan; "" when there is one. Also when plans were found and none can be exported.
std::string reason(const PlanAnswer& answer);

std::string to_json(const PlanAnswer& answer);
std::string as_text(const PlanAnswer& answer, const Style& style);
// Where nothing fits: what takes the memory in the plan that comes nearest; "" where there is none.
std::string nearest_text(const PlanAnswer& answer, const Style& style);

// The best plan with all that it was made from, as `plait plan -o` saves it.
std::string plan_file(const PlanAnswer& answer);

}  // namespace plait
