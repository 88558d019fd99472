#include "runtime/torch/train/trainer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "runtime/torch/comm/device_state.h"

namespace plait::runtime {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

at::ScalarType dtype_of(Precision precision, bool exact) {
  if (precision == Precision::bf16) return at::kBFloat16;
  return exact ? at::kDouble : at::kFloat;
}

ExecProgram lowered(const Model& model, const Plan& plan) {
  Lowered out = lower(model);
  PLAIT_CHECK(out.fault.empty());
  return with_splits(std::move(out.program), plan);
}

std::vector<Task> tasks_of(const Plan& plan, const Layout& layout, int stage) {
  Pipeline pipeline{.schedule = plan.schedule,
                    .stages = layout.stages,
                    .chunks = layout.chunks,
                    .micro_batches = plan.micro_batches};
  pipeline.time.resize(layout.stages * layout.chunks);
  pipeline.send.resize(layout.stages * layout.chunks - 1);
  return task_lists(pipeline)[stage];
}

// Every set of ranks that computes together.
std::vector<std::vector<int>> tensor_groups(const Layout& layout) {
  std::vector<std::vector<int>> sets;
  for (const SpanPlace& span : layout.spans)
    for (int d = 0; d < span.data; ++d) {
      const auto first = span.ranks.begin() + d * span.tensor;
      sets.emplace_back(first, first + span.tensor);
    }
  return sets;
}

}  // namespace

Trainer::Trainer(const Problem& problem, const Plan& plan, const TrainOptions& options,
                 Communicator& ranks, Heartbeat* heart)
    : program_(lowered(problem.model, plan)),
      layout_(make_layout(problem, plan, program_)),
      micro_batches_(plan.micro_batches),
      global_batch_(problem.job.global_batch),
      ranks_(ranks),
      heart_(heart) {
  PLAIT_CHECK(layout_.world == ranks.world());
  // A setting of the whole process, which ranks that are threads must not touch at the same time.
  if (ranks.device().is_cuda()) allow_tf32(problem.job.precision != Precision::fp32);
  tasks_ = tasks_of(plan, layout_, stage());
  last_backward_.resize(layout_.chunks);
  for (const Task& task : tasks_)
    if (task.kind == TaskKind::backward) last_backward_[task.chunk] = task;
  samples_ = std::make_unique<Samples>(program_, options.tokens, options.seed);
  ParameterLayout parameters = parameter_layout(layout_, program_, ranks.rank());
  std::vector<std::vector<int>> holders;
  for (const ParameterGroup& group : parameters.groups) holders.push_back(group.ranks);
  ranks.make_groups(tensor_groups(layout_), holders);
  const at::ScalarType dtype = dtype_of(problem.job.precision, options.exact);
  parameters_ = std::make_unique<ParameterStore>(
      std::move(parameters),
      ParameterStore::Settings{.dtype = dtype,
                               .spread = plan.zero == ZeroStage::optimizer,
                               .overlap = problem.job.overlap,
                               .optimizer = problem.job.optimizer,
                               .options = options},
      ranks);
  parameters_->restore([&](const Parameter& parameter, StateKind kind) {
    return kind == StateKind::value ? initial_value(parameter, options.seed) : at::Tensor();
  });
  runner_ = std::make_unique<StageRunner>(
      layout_, program_, *samples_, *parameters_, ranks,
      StageRunner::Settings{.dtype = dtype,
                            .plain_attention = problem.job.attention == AttentionKernel::plain,
                            .overlap = problem.job.overlap,
                            .global_batch = problem.job.global_batch});
}

StepReport Trainer::step(std::int64_t number, const std::stop_token& stop) {
  StepReport out;
  out.step = number;
  if (heart_ != nullptr) heart_->step(number);
  const StepBegin begin{now(), ranks_.waited()};
  parameters_->gradients().begin_step();
  runner_->begin_step(number, micro_batches_);
  task_times_.clear();
  for (const Task& task : tasks_) {
    TaskTime time{.task = task, .begin = now(), .waited = ranks_.waited()};
    if (task.kind == TaskKind::forward) {
      runner_->forward(task.chunk, task.micro_batch);
    } else {
      const bool last = task == last_backward_[task.chunk];
      runner_->backward(task.chunk, task.micro_batch, last);
      if (!last) parameters_->gradients().add_all();
    }
    if (heart_ != nullptr) heart_->progress();
    time.waited = ranks_.waited() - time.waited;
    time.end = now();
    task_times_.push_back(time);
  }
  ranks_.finish_sends();
  const double all_done = now();
  parameters_->gradients().wait();
  const double summed = now();
  const at::Tensor norm = parameters_->update(number);
  end_times_ = {{"gradients", all_done, summed}, {"update", summed, now()}};
  if (ranks_.device().is_cuda()) runner_->prepare(number + 1, micro_batches_);
  report(out, norm, begin, stop);
  return out;
}

// The one point of a step where the host waits for the device.
void Trainer::report(StepReport& out, const at::Tensor& norm, StepBegin begin,
                     const std::stop_token& stop) {
  double busy = 0;
  for (const TaskTime& time : task_times_) busy += time.end - time.begin - time.waited;
  at::Tensor loss = runner_->loss();
  if (ranks_.world() > 1) ranks_.everyone().all_reduce(loss, Reduction::sum);
  out.loss = loss.item<double>() / global_batch_;
  out.gradient_norm = std::sqrt(norm.item<double>());
  out.seconds = now() - begin.time;
  if (ranks_.device().is_cuda() && ranks_.world() == 1) busy = out.seconds;
  out.busy.assign(layout_.stages, 0);
  out.idle.assign(layout_.stages, 0);
  constexpr int kNumbers = 4;
  at::Tensor mine = at::tensor({busy, ranks_.waited() - begin.waited, peak_memory(ranks_.device()),
                                stop.stop_requested() ? 1.0 : 0.0},
                               at::TensorOptions().dtype(at::kDouble))
                        .view({1, kNumbers});
  const at::Tensor all =
      ranks_.world() > 1 ? ranks_.everyone().all_gather(mine.to(ranks_.device()), 0).to(at::kCPU)
                         : mine;
  std::vector<int> count(layout_.stages);
  for (int r = 0; r < ranks_.world(); ++r) {
    const double* row = all.data_ptr<double>() + kNumbers * r;
    const int s = layout_.stage_of[r];
    ++count[s];
    out.busy[s] += row[0];
    out.idle[s] += row[1];
    out.peak_bytes = std::max(out.peak_bytes, row[2]);
    out.stop = out.stop || row[3] != 0;
  }
  for (int s = 0; s < layout_.stages; ++s) {
    out.busy[s] /= count[s];
    out.idle[s] /= count[s];
  }
}

}  // namespace plait::runtime
