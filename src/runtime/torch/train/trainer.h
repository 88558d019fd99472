#pragma once

#include <memory>
#include <stop_token>

#include "cost/pipeline/schedule.h"
#include "runtime/lower/layout.h"
#include "runtime/torch/comm/communicator.h"
#include "runtime/torch/train/parameter_store.h"
#include "runtime/torch/train/samples.h"
#include "runtime/torch/train/stage_runner.h"
#include "runtime/train.h"

namespace plait::runtime {

// One rank of a training run. The plan must pass check_plan() and unsupported_reason().
class Trainer {
 public:
  Trainer(const Problem& problem, const Plan& plan, const TrainOptions& options,
          Communicator& ranks, Heartbeat* heart = nullptr);

  // One step. All ranks get the loss, the norm and whether any of them was asked to `stop`; times
  // and memory are rank 0's to read.
  StepReport step(std::int64_t number, const std::stop_token& stop = {});

  ParameterStore& parameters() { return *parameters_; }

  // When each task of the last step began and ended, on the steady clock.
  struct TaskTime {
    Task task;
    double begin = 0;
    double end = 0;
    double waited = 0;
  };
  const std::vector<TaskTime>& task_times() const { return task_times_; }
  // The same of what follows the tasks: "gradients" are summed over ranks, "update" of parameters.
  struct EndTime {
    const char* what = "";
    double begin = 0;
    double end = 0;
  };
  const std::vector<EndTime>& end_times() const { return end_times_; }
  int stage() const { return layout_.stage_of[ranks_.rank()]; }

 private:
  struct StepBegin {
    double time = 0;
    double waited = 0;
  };
  void report(StepReport& out, const at::Tensor& norm, StepBegin begin,
              const std::stop_token& stop);

  ExecProgram program_;
  Layout layout_;
  int micro_batches_;
  double global_batch_;
  Communicator& ranks_;
  Heartbeat* heart_;
  std::vector<Task> tasks_;
  std::vector<Task> last_backward_;  // of each chunk
  std::unique_ptr<Samples> samples_;
  std::unique_ptr<ParameterStore> parameters_;
  std::unique_ptr<StageRunner> runner_;
  std::vector<TaskTime> task_times_;
  std::vector<EndTime> end_times_;
};

}  // namespace plait::runtime
