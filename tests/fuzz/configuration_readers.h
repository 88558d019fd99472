#pragma once

#include <string>

// Readers of what other programs are told: see readers.h.
namespace plait::fuzz {

void read_metis_command(const std::string& bytes);
void read_layout(const std::string& bytes);
void read_deepspeed(const std::string& bytes);
void read_accelerate(const std::string& bytes);
void read_launch(const std::string& bytes);

}  // namespace plait::fuzz
