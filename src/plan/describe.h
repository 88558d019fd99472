#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace plait {

// The one way a plan is printed in a line:
//   "pp4 tp2 dp8 m32 1f1b zero1 sp recompute=full layers=13,12,12,13 devices=0-63"
//
//   pp4              pipeline stages
//   tp2 dp8          tensor and data degree of every span
//   cp2 ep8          context and expert degree (where not 1)
//   m32              micro-batches per step. Their size is global_batch / 32, which is a matter of
//                    the job and not of the plan
//   1f1b             schedule, by its name in plan/names.h
//   zero1            ZeRO stage (where not 0)
//   sp               sequence parallel (where on)
//   offload=0.5      fraction of the optimizer state in host memory (where not 0)
//   recompute=full   of every span (where not none)
//   split=1          split choice of every span (where not 0)
//   layers=13,12     units of each stage; the embedding and the head are units, too
//   shares=3:1,equal samples of each replica, by stage (where a stage has shares); "7x32:3" is 32
//                    replicas of 7 and one of 3
//   devices=0-63     in pipeline order; "0-3,8-11|4-7" for stages that are not one ascending run
//
// What is the same for all stages is said once, what is not is a list by stage: "tp4,2". Inside a
// stage, spans are joined by "+" and chunks by "/": "layers=5+8,13" cuts the first stage into two
// spans, "layers=3/3" is an interleaved pipeline with two chunks of three layers in every stage.
// Spans that repeat are folded: "recompute=(none+full)*6" for six times none and full. So are
// stages: "layers=3/2,[2/2]*14,2/1" has sixteen of them. A plan that passes check_plan() reads back
// as the same value.
std::string describe(const Plan& plan);

// Reads what describe() writes; the words may come in any order and a list may be longer than need
// be ("tp2,2"). Degrees that are left out are 1. Throws InputError(where, ...) for anything else.
Plan parse_description(const std::string& where, std::string_view text);

// "7x32:3" for 32 shares of 7 and one of 3.
std::string share_runs(const std::vector<int>& shares);

// "0-7,16,20": runs of two or more ascending ids are ranges.
std::string device_ranges(const std::vector<DeviceId>& devices);

}  // namespace plait
