#include "app/run/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "app/request/output_file.h"
#include "app/request/request_error.h"
#include "cost/engine.h"
#include "io/format/text_file.h"
#include "io/plan/plan_json.h"
#include "plan/describe.h"
#include "report/quantities.h"
#include "runtime/backend.h"
#include "runtime/lower/layout.h"
#include "runtime/trial/plan_fields.h"

namespace plait {
namespace {

namespace fs = std::filesystem;

constexpr int kUsualTrials = 5;
constexpr std::size_t kMostOfReason = 200;  // characters of a failure in one line of news

// A plan that will be tried, with its problem's prediction of it.
struct Candidate {
  RankedPlan ranked;
  std::string path;  // where it lies for the command to read
  std::string command;
  std::string id;
};

struct Candidates {
  Problem problem;
  std::vector<RankedPlan> plans;
  std::string reason;  // why there are none
};

std::vector<std::string> plan_paths(const std::vector<std::string>& given) {
  std::vector<std::string> paths;
  for (const std::string& path : given) {
    std::error_code fault;
    if (!fs::is_directory(path, fault)) {
      paths.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (fs::directory_iterator entry(path, fault), end; !fault && entry != end;
         entry.increment(fault))
      if (entry->path().extension() == ".json") inside.push_back(entry->path().string());
    if (fault) throw InputError(path, "cannot be read: " + fault.message());
    if (inside.empty()) throw InputError(path, "has no plan files, which end in .json");
    std::sort(inside.begin(), inside.end());
    paths.insert(paths.end(), inside.begin(), inside.end());
  }
  return paths;
}

// The plans of files, the predicted best first.
Candidates saved_candidates(const TrialRequest& request) {
  const ProblemSource& source = request.search.source;
  if (!source.model.empty() || !source.cluster.empty())
    throw RequestError("plans", "goes without `model` and `cluster`, which the plan files have");
  std::optional<Candidates> out;
  std::string first;
  for (const std::string& path : plan_paths(request.plans)) {
    PlanFile file = read_plan_file(path);
    if (!out) {
      out = Candidates{file.problem, {}, ""};
      first = path;
    } else if (file.problem != out->problem) {
      throw InputError(path, fmt::format("is for another problem than {}: its model, cluster, job "
                                         "or profile differ",
                                         first));
    }
    const Estimate cost = CostEngine(out->problem).simulate(file.plan);
    out->plans.push_back({std::move(file.plan), cost});
  }
  std::stable_sort(
      out->plans.begin(), out->plans.end(),
      [](const RankedPlan& a, const RankedPlan& b) { return a.cost.step < b.cost.step; });
  return std::move(*out);
}

// The best plans of a search.
Candidates found_candidates(const TrialRequest& request, const Session& session) {
  const ProblemSource& source = request.search.source;
  for (const auto& [field, missing] : {std::pair("model", source.model.empty() && !source.metis),
                                       std::pair("cluster", source.cluster.empty()),
                                       std::pair("global_batch", source.job.global_batch == 0)})
    if (missing)
      throw RequestError(field, "is missing: say what to train and on what, or give `plans`");
  PlanAnswer found = answer(request.search, session);
  std::string why = found.found() ? std::string() : reason(found);
  return {std::move(found.problem), std::move(found.result.plans), std::move(why)};
}

// Leaves out the plans that plait's own runtime cannot execute, and says why of the best of them.
void keep_executable(Candidates& found) {
  std::string why_not;
  std::erase_if(found.plans, [&](const RankedPlan& ranked) {
    std::string reason = runtime::unsupported_reason(found.problem, ranked.plan);
    if (why_not.empty()) why_not = reason;
    return !reason.empty();
  });
  if (found.plans.empty())
    found.reason = "none of the plans can be executed by plait train: " + why_not;
}

std::vector<Candidate> prepared(const TrialRequest& request, const Candidates& found) {
  std::vector<Candidate> out;
  for (const RankedPlan& ranked : found.plans) {
    if (out.size() == static_cast<std::size_t>(request.trials.value_or(kMaxTrials))) break;
    Candidate candidate{ranked, "", "", ""};
    candidate.id = runtime::trial_id(found.problem, ranked.plan, request.launch);
    candidate.path =
        (fs::path(request.folder) / fmt::format("plan-{}.json", candidate.id)).string();
    candidate.command = runtime::with_fields(
        request.launch, runtime::plan_fields(found.problem, ranked.plan, candidate.path));
    out.push_back(std::move(candidate));
  }
  return out;
}

runtime::TrialRow try_out(const TrialRequest& request, const Problem& problem,
                          const Candidate& candidate, const std::stop_token& stop) {
  const auto& [plan, cost] = candidate.ranked;
  write_text_file(candidate.path, plan_file_to_json(problem, plan, cost));
  runtime::TrialOptions options = request.limits;
  options.command = candidate.command;
  options.global_batch = problem.job.global_batch;
  options.log_path = fs::path(candidate.path).replace_extension(".log").string();
  options.stop = stop;
  for (const auto& [name, value] : runtime::plan_fields(problem, plan, candidate.path))
    options.environment.emplace_back(runtime::variable_of(name), value);
  return {candidate.id, describe(plan), cost.step, cost.peak_memory(), runtime::run_trial(options)};
}

std::string news_of(const runtime::TrialRow& row) {
  if (row.result.step)
    return fmt::format("{} (predicted {}, {:+.1f} %)", in_words(*row.result.step),
                       in_words(row.predicted), 100 * *row.error());
  return fmt::format("{}: {}", name_of(row.result.end), row.result.reason.substr(0, kMostOfReason));
}

void make_trial_folder(const std::string& folder) {
  std::error_code fault;
  fs::create_directories(folder, fault);
  std::error_code unknown;
  if (!fs::is_directory(folder, unknown))
    throw RequestError("folder", fmt::format("{} cannot be made: {}", folder,
                                             (fault ? fault : unknown).message()));
}

// Tries one after the other; what the table has is not run again.
void run_trials(const TrialRequest& request, const std::vector<Candidate>& candidates,
                const TrialSession& session, TrialAnswer& out) {
  make_trial_folder(request.folder);
  runtime::TrialRows table(
      request.table.empty() ? (fs::path(request.folder) / "trials.csv").string() : request.table);
  for (std::size_t i = 0; i < candidates.size() && !session.stop.stop_requested(); ++i) {
    const Candidate& candidate = candidates[i];
    const runtime::TrialRow* before = table.find(candidate.id);
    const bool known =
        before != nullptr && !(request.retry && before->result.end != runtime::TrialEnd::measured);
    runtime::TrialRow row =
        known ? *before : try_out(request, out.problem, candidate, session.stop);
    if (row.result.end == runtime::TrialEnd::interrupted) break;
    if (!known) table.append(row, out.problem);
    if (session.tell)
      session.tell(fmt::format("trial {} of {}{}: {}", i + 1, candidates.size(),
                               known ? " (from the table)" : "", news_of(row)));
    out.plans.push_back(candidate.ranked);
    out.rows.push_back(std::move(row));
  }
}

}  // namespace

TrialAnswer answer(const TrialRequest& request, const TrialSession& session) {
  if (!request.launch.empty() && !request.train.empty())
    throw RequestError("train", "goes without `launch`, which starts another program");
  check_output(request.table);
  const runtime::RunLog checked(request.limits.patterns, 1);
  TrialRequest full = request;
  const bool own = request.launch.empty();
  if (own) {
    runtime::need_torch_program("trial");
    full.launch = runtime::train_command(
        runtime::program_file(), request.limits.warm_up + request.limits.steps, request.train);
  }
  if (!full.trials && full.plans.empty()) full.trials = kUsualTrials;
  full.search.search.keep = own ? kMaxTrials : full.trials.value_or(kMaxTrials);
  Candidates found = full.plans.empty() ? found_candidates(full, session) : saved_candidates(full);
  if (own && !found.plans.empty()) keep_executable(found);
  TrialAnswer out;
  out.reason = found.reason;
  const std::vector<Candidate> candidates = prepared(full, found);
  out.problem = std::move(found.problem);
  if (!candidates.empty()) run_trials(full, candidates, session, out);
  out.interrupted = session.stop.stop_requested();
  return out;
}

std::string best_plan_file(const TrialAnswer& answer) {
  const int best = agreement_of(answer.rows).best;
  if (best < 0) return "";
  const auto& [plan, cost] = answer.plans[static_cast<std::size_t>(best)];
  return plan_file_to_json(answer.problem, plan, cost);
}

}  // namespace plait
