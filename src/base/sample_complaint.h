#pragma once

// What a wrong input is told, for tests.

#include <string>

#include "base/error.h"

namespace plait::samples {

// The words of the InputError that is thrown; "" = none.
std::string complaint(const auto& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace plait::samples
