#include "runtime/torch/train/checkpointing.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "base/error.h"
#include "plan/names.h"

namespace plait::runtime {
namespace {

void refuse_other_run(const Checkpoint& saved, const CheckpointNote& run) {
  const auto refuse = [&](const std::string& what, const std::string& there,
                          const std::string& here) {
    if (there != here)
      throw InputError(saved.path(), fmt::format("is of a run with {} '{}', and this one has '{}': "
                                                 "name another directory",
                                                 what, there, here));
  };
  refuse("the model", saved.note().model, run.model);
  refuse("the optimizer", saved.note().optimizer, run.optimizer);
  refuse("the seed", std::to_string(saved.note().seed), std::to_string(run.seed));
  refuse("the tokens", saved.note().tokens, run.tokens);
}

// Reads from the checkpoint at `path`. Where it is damaged, the error also says what helps.
template <typename Read>
auto read_or_tell(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const InputError& error) {
    const std::string what = std::string(error.what()).substr(error.where().size() + 2);
    throw InputError(error.where(), fmt::format("{}; move {} away to go on from the checkpoint "
                                                "before it",
                                                what, path));
  }
}

}  // namespace

CheckpointNote note_of(const Problem& problem, const TrainOptions& options, std::int64_t step) {
  return {.step = step,
          .seed = options.seed,
          .model = problem.model.name,
          .tokens = std::filesystem::path(options.tokens).filename().string(),
          .samples = step * problem.job.global_batch,
          .optimizer = std::string(name_of(problem.job.optimizer))};
}

void save_checkpoint(ParameterStore& parameters, const CheckpointNote& note,
                     const std::string& directory, int keep, Communicator& ranks,
                     Heartbeat* heart) {
  std::unique_ptr<CheckpointWriter> writer;
  if (ranks.rank() == 0) writer = std::make_unique<CheckpointWriter>(directory, note.step);
  parameters.collect({StateKind::value, StateKind::first_moment, StateKind::second_moment},
                     [&](const Parameter& parameter, StateKind kind, const at::Tensor& whole) {
                       const at::Tensor values = whole.to(at::kFloat).contiguous();
                       writer->add(
                           parameter.name, kind, parameter.shape,
                           {values.data_ptr<float>(), static_cast<std::size_t>(values.numel())});
                     });
  if (writer)
    writer->commit(note, keep, [heart] {
      if (heart != nullptr) heart->progress();
    });
}

std::int64_t resume_checkpoint(ParameterStore& parameters, const CheckpointNote& run,
                               const std::string& directory, Communicator& ranks) {
  const std::string key = "checkpoint to resume";
  if (ranks.rank() == 0) ranks.put(key, "path " + latest_checkpoint(directory).value_or(""));
  const std::string path = ranks.get(key).substr(5);
  if (path.empty()) return 0;
  Checkpoint saved = read_or_tell(path, [&] { return Checkpoint(path); });
  // Each rank reads, and verifies, the parameters that it holds; together they read all of them.
  if (ranks.rank() == 0) read_or_tell(path, [&] { saved.check_files(); });
  refuse_other_run(saved, run);
  saved.check_names(parameters.names());
  parameters.restore([&](const Parameter& parameter, StateKind kind) {
    if (!saved.has(parameter.name, kind))
      throw InputError(path, fmt::format("has no {} of {}", name_of(kind), parameter.name));
    const auto values =
        read_or_tell(path, [&] { return saved.read(parameter.name, kind, parameter.shape); });
    return at::from_blob(const_cast<float*>(values.data()), parameter.shape, at::kFloat).clone();
  });
  return saved.note().step;
}

}  // namespace plait::runtime
