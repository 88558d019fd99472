#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "profile/profile.h"
#include "runtime/profiler/profile.h"

namespace plait {

// Measure collectives and messages: start ranks on this machine and watch over them, or be one of
// the ranks that a launcher has started.
struct LinksRequest {
  int local = 0;             // ranks to start, where no launcher has started any
  std::vector<int> threads;  // of each rank, or one number for all; empty = equal parts
  std::vector<int> sizes;    // bytes of the tensors; empty = 1 KiB to 64 MiB
  runtime::MeterOptions meter;
  std::string command;                    // as it was given, for the profile to tell
  std::vector<std::string> rank_command;  // the words that each rank runs: with the same request
};

// How a front end takes part.
struct LinksSession {
  std::stop_token stop;
  std::function<void(const std::string& sentence)> tell;  // for people
  std::function<void(int rank, bool error_stream, const std::string& line)> on_rank_line;
};

struct LinksAnswer {
  Profile profile;
  bool measured = false;  // here: this process is rank 0
  bool interrupted = false;
};

LinksAnswer answer(const LinksRequest& request, const LinksSession& session);
std::string to_json(const LinksAnswer& answer);  // a profile file
std::string as_text(const LinksAnswer& answer);  // "12 curves"

}  // namespace plait
