#include "runtime/torch/train/checkpointing.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "base/error.h"
#include "plan/describe.h"
#include "runtime/lower/runnable_plans.h"
#include "runtime/torch/comm/device_state.h"
#include "runtime/torch/train/trainer.h"

namespace plait::runtime {
namespace {

TrainOptions options() {
  TrainOptions o;
  o.learning_rate = 0.01;
  o.epsilon = 1e-3;  // gradients that are zero but for rounding must not be blown up
  o.exact = true;    // checkpoints are at stake here, not rounding
  o.seed = 5;
  return o;
}

// Trains up to step `end`, from the last checkpoint of the folder if there is one, and saves one
// there. The ranks are threads; one that fails ends the process, as the others would wait. Gives
// the losses by step.
std::map<std::int64_t, double> train(const Problem& problem, const Plan& plan,
                                     const std::string& folder, int end) {
  const std::shared_ptr<Meeting> meeting = meet_in_process();
  int world = 0;
  for (const Stage& stage : plan.stages) world += static_cast<int>(stage.devices.size());
  std::map<std::int64_t, double> losses;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] {
      try {
        use_threads(1);
        Communicator ranks(meeting, rank, world, at::kCPU, nullptr);
        Trainer trainer(problem, plan, options(), ranks);
        std::int64_t step =
            resume_checkpoint(trainer.parameters(), note_of(problem, options(), 0), folder, ranks);
        for (; step < end; ++step) {
          const StepReport report = trainer.step(step);
          if (rank == 0) losses[step] = report.loss;
        }
        save_checkpoint(trainer.parameters(), note_of(problem, options(), step), folder, 1, ranks);
        ranks.everyone().all_gather(at::zeros({1}), 0);
      } catch (const std::exception& error) {
        std::cerr << "rank " << rank << " of " << describe(plan) << ": " << error.what() << "\n";
        std::_Exit(1);
      }
    });
  for (std::thread& thread : threads) thread.join();
  return losses;
}

// Of this process alone: tests may run side by side.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::path(testing::TempDir()) /
              ("plait_" + name + "_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// Largest difference of any value, relative to the largest of its parameter.
double difference(const std::string& got, const std::string& wanted,
                  const std::vector<std::string>& names, const ExecProgram& program) {
  Checkpoint a(latest_checkpoint(got).value()), b(latest_checkpoint(wanted).value());
  a.check_names(names);
  double worst = 0;
  for (const ExecOp& op : program.ops)
    for (const Parameter& parameter : op.parameters) {
      if (!parameter.owned) continue;
      const auto x = a.read(parameter.name, StateKind::value, parameter.shape);
      const auto y = b.read(parameter.name, StateKind::value, parameter.shape);
      double largest = 1e-6, apart = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        largest = std::max<double>(largest, std::abs(y[i]));
        apart = std::max<double>(apart, std::abs(x[i] - y[i]));
      }
      worst = std::max(worst, apart / largest);
    }
  return worst;
}

void run_pairs(unsigned seed, int count, int ranks) {
  samples::RunnablePlans plans(seed);
  const std::vector<Model> models = samples::tiny_models();
  for (int i = 0; i < count; ++i) {
    const Problem problem = samples::tiny_problem(models[(seed + i) % models.size()],
                                                  static_cast<Optimizer>(plans.below(3)));
    const Plan a = plans.next(problem, ranks), b = plans.next(problem, ranks);
    const std::string what = problem.model.name + ": " + describe(a) + " -> " + describe(b);
    const Folder whole_folder("checkpoint_whole"), parts_folder("checkpoint_parts");
    const std::string whole = whole_folder.path(), parts = parts_folder.path();
    std::map<std::int64_t, double> wanted;
    // Checkpoints are rounded to fp32, which may switch a ReLU: convolutional networks save one
    // there too.
    if (problem.model.name == "resnet")
      wanted = train(problem, samples::lone_plan(problem), whole, 2);
    wanted.merge(train(problem, samples::lone_plan(problem), whole, 4));
    auto got = train(problem, a, parts, 2);
    got.merge(train(problem, b, parts, 4));
    ASSERT_EQ(got.size(), 4U);
    for (const auto& [step, loss] : wanted) EXPECT_NEAR(got.at(step), loss, 1e-5 * loss) << what;
    const ExecProgram program = lower(problem.model).program;
    std::vector<std::string> names;
    for (const ExecOp& op : program.ops)
      for (const Parameter& parameter : op.parameters)
        if (parameter.owned) names.push_back(parameter.name);
    EXPECT_LT(difference(parts, whole, names, program), 1e-5) << what;
  }
}

TEST(Checkpointing, ARunResumedUnderAnotherPlanEqualsOneUndisturbed) { run_pairs(3, 4, 4); }

TEST(SlowCheckpointing, ManyRunsResumedUnderAnotherPlanEqualOneUndisturbed) {
  run_pairs(50, 40, 8);
}

TEST(Checkpointing, ARunOfAnotherKindIsRefused) {
  const Problem problem =
      samples::tiny_problem(build_transformer(samples::tiny_gpt()), Optimizer::adam);
  const Folder other_folder("checkpoint_other");
  const std::string folder = other_folder.path();
  train(problem, samples::lone_plan(problem), folder, 1);
  Communicator ranks(meet_in_process(), 0, 1, at::kCPU, nullptr);
  Trainer trainer(problem, samples::lone_plan(problem), options(), ranks);
  TrainOptions other = options();
  other.seed = 6;
  EXPECT_THROW(resume_checkpoint(trainer.parameters(), note_of(problem, other, 0), folder, ranks),
               InputError);
}

}  // namespace
}  // namespace plait::runtime
