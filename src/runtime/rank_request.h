#pragma once

#include <string>

#include "io/format/json_reader.h"
#include "runtime/train.h"

namespace plait::runtime {

// What the launcher asks of every rank, as a file: the plan, and how to train. It lies in a folder
// that only this user can read.
struct RankRequest {
  std::string plan;  // path
  TrainOptions options;
  std::string device = "auto";  // cpu, cuda, or auto: a GPU where there is one
  bool json = false;            // print steps as JSON
};

std::string rank_request_json(const RankRequest& request);
bool is_rank_request(const JsonValue& json);
RankRequest rank_request_from(const JsonValue& json);

}  // namespace plait::runtime
