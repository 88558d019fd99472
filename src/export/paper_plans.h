#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"
#include "plan/problem.h"
#include "plan/target.h"
#include "search/space/pins.h"

namespace plait {

// What the programs of AMP, FASOP and Metis have in common: which plans they can express, and how
// they count.

// "" or what none of the three programs has words for.
std::string beyond_the_papers(const Problem& problem, const Plan& plan);

// Pins all of that which is left free.
void narrow_to_papers(Pins& pins);

// "" or why the plan is not one set of degrees, the same for all stages and replicas.
std::string not_uniform(const Problem& problem, const Plan& plan);

// Leaves such plans alone in the target's space, with devices in the order of ranks.
void limit_to_one_layout(Target& target);

// All devices of the plan, stage by stage.
std::vector<DeviceId> devices_in_order(const Plan& plan);

// Bounds of the stages: 0, .., number of units.
std::vector<int> stage_bounds(const Plan& plan);

// Samples of a micro-batch on one replica of the first stage.
int micro_batch_of(const Problem& problem, const Plan& plan);

bool is_encoder_decoder(const Model& model);

}  // namespace plait
