#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <regex>
#include <variant>

#include "validation/run_parts.h"

namespace plait {
namespace {

std::vector<int> even_chunks(int units, int chunks) {
  const int layers = units - 2;
  if (layers % chunks != 0 && units % chunks == 0)
    return std::vector<int>(chunks, units / chunks);  // embedding and loss count as layers
  if (layers < chunks)
    throw RowRefused(fmt::format("{} layers cannot be cut into {} chunks", layers, chunks));
  std::vector<int> sizes(chunks, layers / chunks);
  const int rest = layers % chunks;
  // Not the last one: it has the head to compute.
  for (int i = 0; i < rest; ++i) ++sizes[chunks - 2 - i];
  ++sizes.front();
  ++sizes.back();
  return sizes;
}

// No chunk may be empty: the nearest later one with two units, else the nearest earlier one, gives
// up one of them, and those between move on.
void fill_empty(std::vector<int>& sizes, Assumptions& assumptions) {
  const auto large = [](int size) { return size > 1; };
  for (auto empty = std::ranges::find(sizes, 0); empty != sizes.end();
       empty = std::ranges::find(sizes, 0)) {
    auto giver = std::find_if(empty, sizes.end(), large);
    if (giver == sizes.end()) {
      const auto before = std::find_if(std::make_reverse_iterator(empty), sizes.rend(), large);
      if (before == sizes.rend()) throw RowRefused("there are more stages than layers");
      giver = std::prev(before.base());
    }
    --*giver;
    ++*empty;
    assumptions.push_back(
        fmt::format("a layer for stage {}, which has none", empty - sizes.begin() + 1));
  }
}

// AMP cuts TransGAN into 56 pieces where plait has 31 units: 3 make the latent layer, 26 the five
// enlargements between the two stacks of 12 blocks, 3 the image.
constexpr int kGanPieces = 56;
constexpr int kGanUnits = 31;

int gan_unit(int piece) {
  struct Joint {
    int piece;
    int unit;
  };
  constexpr Joint kJoints[] = {{0, 0}, {3, 1}, {15, 13}, {41, 18}, {53, 30}, {56, 31}};
  for (int i = 1;; ++i) {
    const Joint& begin = kJoints[i - 1];
    const Joint& end = kJoints[i];
    if (piece > end.piece) continue;
    return begin.unit +
           static_cast<int>(std::round(1.0 * (piece - begin.piece) * (end.unit - begin.unit) /
                                       (end.piece - begin.piece)));
  }
}

std::vector<int> gan_chunks(const std::vector<int>& split, Assumptions& assumptions) {
  std::vector<int> sizes;
  int piece = 0;
  for (const int count : split) {
    const int begin = gan_unit(piece);
    piece = std::min(piece + count, kGanPieces);
    sizes.push_back(gan_unit(piece) - begin);
  }
  fill_empty(sizes, assumptions);
  return sizes;
}

// A stated split counts layers, or layers and what stands before and after them: the embedding and
// the head, or AMP's 30 pseudo-layers for 24 layers, of which 2 stand before and 4 after.
std::vector<int> stated_chunks(const std::vector<int>& split, int units, Assumptions& assumptions) {
  const int layers = units - 2;
  const int sum = std::accumulate(split.begin(), split.end(), 0);
  if (sum == kGanPieces && units == kGanUnits) return gan_chunks(split, assumptions);
  const int before = sum == layers ? 0 : sum == layers + 2 ? 1 : sum == layers + 6 ? 2 : -1;
  if (before < 0)
    throw RowRefused(
        fmt::format("layer_split adds up to {}, the model has {} layers", sum, layers));
  std::vector<int> sizes;
  int at = -before;
  for (const int count : split) {
    const int begin = std::clamp(at, 0, layers);
    at += count;
    sizes.push_back(std::clamp(at, 0, layers) - begin);
  }
  ++sizes.front();
  ++sizes.back();
  fill_empty(sizes, assumptions);
  return sizes;
}

// A split that counts ops, which need not add up to whole layers: the nearest whole ones.
std::vector<int> chunks_of_ops(const std::vector<int>& ops, int units, Assumptions& assumptions) {
  const double layers = units - 2;
  const double sum = std::accumulate(ops.begin(), ops.end(), 0.0);
  if (sum <= 0) throw RowRefused("layer_split has no ops");
  std::vector<int> sizes;
  double done = 0;
  int begin = 0;
  for (const int count : ops) {
    done += count;
    const int end = static_cast<int>(std::round(done / sum * layers));
    sizes.push_back(end - begin);
    begin = end;
  }
  ++sizes.front();
  ++sizes.back();
  fill_empty(sizes, assumptions);
  assumptions.emplace_back("stages of whole layers");
  return sizes;
}

constexpr const char* kNanotron = "nanotron";  // of the catalogue

// nanotron's stages: blocks go to a stage until the cost so far is above the stage's part of the
// whole, where a layer of width h and f counts 4 h^2 + 3 f h and the head its vocabulary times h
// (get_block_compute_costs in its models). 28 layers of 3072 and 8192 with 131,072 tokens on two
// stages: 3.7 layers for the head, so that the first has 16. Nothing where a stage is left empty.
std::vector<int> stages_by_cost(const TransformerConfig& c, int units, int stages) {
  const double width = c.hidden;
  const double layer = 4 * width * width + 3 * width * (c.ffn > 0 ? c.ffn : 4 * width);
  const double head = width * c.vocabulary;
  const double whole = (units - 2) * layer + head;
  std::vector<int> sizes{1};  // the embedding, which counts nothing
  double done = 0;
  for (int u = 1; u < units; ++u) {
    ++sizes.back();
    done += u + 1 < units ? layer : head;
    if (u + 1 < units && done > whole * static_cast<double>(sizes.size()) / stages)
      sizes.push_back(0);
  }
  return static_cast<int>(sizes.size()) == stages ? sizes : std::vector<int>();
}

// Units dealt evenly to stages, then to the chunks of a stage, earlier chunks first.
std::vector<int> even_stages(int units, int stages, int per_stage, Schedule schedule) {
  const int stage = units / stages;
  std::vector<int> sizes(static_cast<std::size_t>(stages) * per_stage, stage / per_stage);
  for (int s = 0; s < stages; ++s)
    for (int c = 0; c < stage % per_stage; ++c) ++sizes[chunk_position(schedule, stages, s, c)];
  return sizes;
}

}  // namespace

std::vector<int> numbers_with_bars(const std::string& text, const std::string& label) {
  const std::size_t from = label.empty() ? 0 : text.find(label);
  std::vector<int> numbers;
  if (from == text.npos) return numbers;
  const std::string tail = text.substr(from + label.size());
  static const std::regex list(R"(\d{1,6}(?:\|\d{1,6})+)");
  static const std::regex number(R"(\d+)");
  std::smatch match;
  if (!std::regex_search(tail, match, list)) return numbers;
  const std::string found = match.str();
  for (std::sregex_iterator it(found.begin(), found.end(), number), end; it != end; ++it)
    numbers.push_back(std::stoi(it->str()));
  return numbers;
}

std::vector<int> chunk_sizes(const RunRow& row, const Job& job, const RunDegrees& degrees,
                             Schedule schedule, const Model& model, Assumptions& assumptions) {
  const int units = model.unit_count();
  const int stages = degrees.pipeline();
  const int per_stage = schedule == Schedule::interleaved ? degrees.chunks
                        : schedule == Schedule::zb_v      ? 2
                                                          : 1;
  const std::vector<int> split = numbers_with_bars(row.layer_split);
  if (per_stage == 1 && !split.empty()) {
    if (static_cast<int>(split.size()) != stages)
      throw RowRefused(fmt::format("layer_split has {} parts, pp is {}", split.size(), stages));
    return mentions(row.layer_split, "ops") ? chunks_of_ops(split, units, assumptions)
                                            : stated_chunks(split, units, assumptions);
  }
  if (mentions(row.layer_split, "first and last stage have one layer fewer") &&
      units % stages == 0 && units / stages >= per_stage)
    return even_stages(units, stages, per_stage, schedule);
  const auto* config = std::get_if<TransformerConfig>(&model.architecture);
  if (job.framework.name == kNanotron && per_stage == 1 && stages > 1 && config != nullptr)
    if (std::vector<int> sizes = stages_by_cost(*config, units, stages); !sizes.empty()) {
      assumptions.emplace_back("stages as nanotron cuts them, by cost");
      return sizes;
    }
  return even_chunks(units, stages * per_stage);
}

}  // namespace plait
