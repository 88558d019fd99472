#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/lower/exec_op.h"
#include "runtime/state/token_file.h"
#include "runtime/torch/train/unit_module.h"

namespace plait::runtime {

// What is trained on. A sample is a function of (seed, step, its number in the step), so every rank
// makes its own and all plans see the same.
//
// Synthetic tokens can be learnt: a token follows from the one before it in one of three ways.
// Synthetic images are noise around a colour for each class. BERT's are masked: 15 % of the tokens
// are replaced by the last word of the vocabulary, and the loss is over those.
class Samples {
 public:
  // `tokens` is a token file; "" = synthetic. InputError when it does not fit the model.
  Samples(const ExecProgram& program, const std::string& tokens, std::uint64_t seed);

  // Samples [first, first + count) of a step, on the CPU.
  Batch batch(std::int64_t step, std::int64_t first, std::int64_t count) const;

 private:
  void write_tokens(std::int64_t step, std::int64_t number, std::int64_t length,
                    std::int64_t* into) const;
  Batch images(std::int64_t step, std::int64_t first, std::int64_t count) const;
  void mask(Batch& batch, std::int64_t step, std::int64_t first) const;

  const ExecProgram& program_;
  std::unique_ptr<TokenFile> file_;
  std::uint64_t seed_;
};

}  // namespace plait::runtime
