#pragma once

#include <string>

namespace plait {

// A global batch that is said in tokens: "4M" may be 4,000,000 or 4 x 1,048,576.
struct BatchTokens {
  double decimal = 0;
  double binary = 0;  // the same where there is no letter
  std::string text;   // as the user wrote it
  friend bool operator==(const BatchTokens&, const BatchTokens&) = default;
};

// Samples of so many tokens each: whole ones by the decimal reading, else by the binary one, else
// the nearest whole number, which `note` then says. 4M tokens in sequences of 4,096 are 1,024.
struct BatchSamples {
  int samples = 0;
  std::string note;  // "" = it came out even
};
BatchSamples samples_of(const BatchTokens& tokens, int sequence);

}  // namespace plait
