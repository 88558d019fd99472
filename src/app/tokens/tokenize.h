#pragma once

#include <optional>
#include <string>

namespace plait {

// Turn a text into tokens to train on.
struct TokenizeRequest {
  std::string path;
  std::string output;             // the token file; its index goes beside it
  std::optional<int> vocabulary;  // learn byte pairs up to this many tokens; nothing = plain bytes
  std::string tokenizer;          // the index of a token file whose vocabulary is used; "" = none
};

struct TokenizeAnswer {
  std::string tokens;  // files
  std::string index;
  double count = 0;
  int vocabulary = 0;
  int wanted_vocabulary = 0;  // more than the text has pairs for, where it is greater
  double bytes_per_token = 0;
};

inline constexpr int kLeastVocabulary = 256;
inline constexpr int kMostVocabulary = 131072;

TokenizeAnswer answer(const TokenizeRequest& request);
std::string to_json(const TokenizeAnswer& answer);
std::string as_text(const TokenizeAnswer& answer);

// Turn a token file back into text. `output` is where the text will go, "" = to no file; InputError
// when that would overwrite what is read.
struct DetokenizeRequest {
  std::string path;
  std::string output;
};
std::string answer(const DetokenizeRequest& request);

}  // namespace plait
