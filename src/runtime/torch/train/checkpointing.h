#pragma once

#include <string>

#include "plan/problem.h"
#include "runtime/state/checkpoint.h"
#include "runtime/torch/comm/communicator.h"
#include "runtime/torch/train/parameter_store.h"

namespace plait::runtime {

// What a checkpoint says of a run besides its values.
CheckpointNote note_of(const Problem& problem, const TrainOptions& options, std::int64_t step);

// Saves a checkpoint after a number of steps; all ranks call it, rank 0 writes and tells its
// progress.
void save_checkpoint(ParameterStore& parameters, const CheckpointNote& note,
                     const std::string& directory, int keep, Communicator& ranks,
                     Heartbeat* heart = nullptr);

// Sets parameters and optimizer state from the last checkpoint of a directory and gives the number
// of the next step; 0, and nothing is set, where there is none. All ranks call it and must see the
// same directory; rank 0 decides. InputError when it is of another model, seed, optimizer or text,
// and when any file of it is damaged, missing or not its own.
std::int64_t resume_checkpoint(ParameterStore& parameters, const CheckpointNote& run,
                               const std::string& directory, Communicator& ranks);

}  // namespace plait::runtime
