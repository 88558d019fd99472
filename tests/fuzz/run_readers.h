#pragma once

#include <string>

// Readers of what runs leave behind: see readers.h.
namespace plait::fuzz {

void read_trials(const std::string& bytes);
void read_log(const std::string& bytes);
void read_rank_request(const std::string& bytes);
void read_tokens(const std::string& bytes);
void read_checkpoint(const std::string& bytes);
void read_points(const std::string& bytes);
void read_times_of_graph(const std::string& bytes);

}  // namespace plait::fuzz
