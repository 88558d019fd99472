#include "search/auto/paper_plans.h"

#include <array>
#include <cstdint>

#include "base/parallel.h"
#include "search/space/planners.h"

namespace plait {
namespace {

constexpr std::int64_t kMostPlans = 6'000;  // of each

struct Question {
  SearchResult (*search)(const SearchContext&);
  SearchOptions options;
};

}  // namespace

std::vector<Plan> plans_of_papers(const SearchContext& context,
                                  const std::vector<int>& micro_batches, Seconds cutoff,
                                  const std::function<bool()>& stop) {
  if (micro_batches.empty()) return {};
  SearchOptions options = context.options;
  options.max_evaluations = kMostPlans;
  options.promising_micro_batches = micro_batches;
  options.cutoff = cutoff;
  options.threads = 1;
  // Metis takes longest: half of the numbers of micro-batches each.
  std::array<std::vector<int>, 2> halves;
  for (std::size_t i = 0; i < micro_batches.size(); ++i)
    halves[(i + 1) % 2].push_back(micro_batches[i]);
  std::vector<Question> questions;
  for (const std::vector<int>& half : halves) {
    if (half.empty()) continue;
    questions.push_back({search_like_metis, options});
    questions.back().options.promising_micro_batches = half;
  }
  questions.push_back({search_like_amp, options});
  questions.push_back({search_like_fasop, options});
  std::vector<SearchResult> answers(questions.size());
  parallel_for(static_cast<int>(questions.size()), context.options.threads, [&](int i) {
    SearchContext quiet = context;
    quiet.options = questions[i].options;
    quiet.on_improvement = {};
    quiet.on_progress = {};
    if (!stop()) answers[i] = questions[i].search(quiet);
  });
  std::vector<Plan> plans;
  for (const SearchResult& answer : answers)
    for (const RankedPlan& ranked : answer.plans) plans.push_back(ranked.plan);
  return plans;
}

}  // namespace plait
