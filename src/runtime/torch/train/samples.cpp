#include "runtime/torch/train/samples.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace plait::runtime {
namespace {

// splitmix64 (Steele et al., OOPSLA'14): a number that depends on nothing but its arguments.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

class Numbers {
 public:
  Numbers(std::uint64_t seed, std::int64_t step, std::int64_t number, std::uint64_t use)
      : state_(mixed(mixed(mixed(seed) ^ step) ^ number) ^ use) {}
  std::uint64_t next() { return state_ = mixed(state_); }
  std::int64_t below(std::int64_t limit) { return static_cast<std::int64_t>(next() % limit); }
  // From -1 to 1, two of one number.
  float noise() {
    const bool second = std::exchange(has_second_, !has_second_);
    if (!second) noise_ = next();
    const std::uint64_t bits = second ? noise_ & 0xffffffff : noise_ >> 32;
    return static_cast<float>(bits >> 8) * 0x1p-23F - 1;
  }

 private:
  std::uint64_t state_;
  std::uint64_t noise_ = 0;
  bool has_second_ = false;
};

enum Use : std::uint64_t { kTokens = 1, kMask, kImage, kSentence };

at::Tensor numbers(std::int64_t rows, std::int64_t columns) {
  return at::zeros({rows, columns}, at::TensorOptions().dtype(at::kLong));
}

}  // namespace

Samples::Samples(const ExecProgram& program, const std::string& tokens, std::uint64_t seed)
    : program_(program), seed_(seed) {
  if (tokens.empty()) return;
  if (program.images) throw InputError(tokens, "the model is trained on images, not on tokens");
  file_ = std::make_unique<TokenFile>(tokens);
  if (file_->index().vocabulary > program.vocabulary)
    throw InputError(tokens, "has a vocabulary of " + std::to_string(file_->index().vocabulary) +
                                 ", the model has one of " + std::to_string(program.vocabulary));
  if (file_->count() <= program.source + program.target)
    throw InputError(tokens, "has " + std::to_string(file_->count()) + " tokens, a sample needs " +
                                 std::to_string(program.source + program.target + 1));
}

void Samples::write_tokens(std::int64_t step, std::int64_t number, std::int64_t length,
                           std::int64_t* into) const {
  if (file_ != nullptr) {
    const std::vector<std::int64_t> read =
        file_->sample(static_cast<int>(length) - 1, seed_, step, number);
    std::copy(read.begin(), read.end(), into);
    return;
  }
  Numbers random(seed_, step, number, kTokens);
  std::int64_t token = random.below(program_.vocabulary);
  for (std::int64_t i = 0; i < length; ++i) {
    into[i] = token;
    token = (token * 31 + 7 + random.below(3)) % program_.vocabulary;
  }
}

Batch Samples::batch(std::int64_t step, std::int64_t first, std::int64_t count) const {
  if (program_.images) return images(step, first, count);
  const std::int64_t length = program_.source + program_.target + 1;
  at::Tensor all = numbers(count, length);
  for (std::int64_t i = 0; i < count; ++i)
    write_tokens(step, first + i, length, all.data_ptr<std::int64_t>() + i * length);
  Batch batch;
  batch.tokens = all.narrow(1, 0, program_.source).contiguous();
  if (program_.target > 0) {
    batch.target = all.narrow(1, program_.source, program_.target).contiguous();
    batch.labels = all.narrow(1, program_.source + 1, program_.target).contiguous();
  } else if (program_.labels == 1) {
    batch.labels = all.narrow(1, 0, 1).remainder(program_.classes).contiguous();
  } else {
    batch.labels = all.narrow(1, 1, program_.source).contiguous();
  }
  if (program_.masked) mask(batch, step, first);
  if (program_.type_rows > 0) {
    batch.types = numbers(count, program_.source);
    if (program_.type_rows > 1)
      batch.types.narrow(1, program_.source / 2, program_.source / 2).fill_(1);
  }
  if (!program_.next_sentence) return batch;
  batch.follows = numbers(count, 1).squeeze(1);
  for (std::int64_t i = 0; i < count; ++i)
    batch.follows.data_ptr<std::int64_t>()[i] = Numbers(seed_, step, first + i, kSentence).below(2);
  return batch;
}

void Samples::mask(Batch& batch, std::int64_t step, std::int64_t first) const {
  constexpr double kMasked = 0.15;
  const std::int64_t count = batch.tokens.size(0);
  batch.labels = batch.tokens.clone();
  batch.weights = at::zeros({count, program_.source}, at::kFloat);
  const auto masked =
      std::max<std::int64_t>(1, std::llround(kMasked * static_cast<double>(program_.source)));
  for (std::int64_t i = 0; i < count; ++i) {
    Numbers random(seed_, step, first + i, kMask);
    std::int64_t* tokens = batch.tokens.data_ptr<std::int64_t>() + i * program_.source;
    float* weights = batch.weights.data_ptr<float>() + i * program_.source;
    for (std::int64_t done = 0; done < masked;) {
      const std::int64_t position = random.below(program_.source);
      if (weights[position] > 0) continue;
      weights[position] = 1.0F / static_cast<float>(masked);
      tokens[position] = program_.vocabulary - 1;
      ++done;
    }
  }
}

Batch Samples::images(std::int64_t step, std::int64_t first, std::int64_t count) const {
  Batch batch;
  const std::int64_t area = program_.source * program_.source;
  batch.images = at::empty({count, 3, program_.source, program_.source}, at::kFloat);
  batch.labels = numbers(count, 1);
  for (std::int64_t i = 0; i < count; ++i) {
    Numbers random(seed_, step, first + i, kImage);
    const std::int64_t label = random.below(program_.classes);
    batch.labels.data_ptr<std::int64_t>()[i] = label;
    float* pixels = batch.images.data_ptr<float>() + i * 3 * area;
    for (std::int64_t channel = 0; channel < 3; ++channel) {
      const float colour = Numbers(seed_, -1, label, channel).noise();
      for (std::int64_t p = 0; p < area; ++p) *pixels++ = colour + random.noise();
    }
  }
  return batch;
}

}  // namespace plait::runtime
