#pragma once

#include <string>

#include "runtime/launch/rank.h"

namespace plait::runtime {

// The secret that a launcher gave to all ranks: PLAIT_RUN_SECRET, or the content of the file that
// PLAIT_RUN_SECRET_FILE names; "" when there is neither. InputError for one of fewer than 16 or
// more than 1,024 characters, and for a file that others than its owner may read.
inline constexpr const char* kSecretVariable = "PLAIT_RUN_SECRET";
inline constexpr const char* kSecretFileVariable = "PLAIT_RUN_SECRET_FILE";
std::string secret_of_run(const Variables& variables);

// A new secret: 256 random bits from the kernel, as hexadecimal digits.
std::string new_secret();
// Random bytes from the kernel.
std::string random_bytes(std::size_t count);

}  // namespace plait::runtime
