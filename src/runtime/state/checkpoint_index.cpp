#include "runtime/state/checkpoint_index.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/error.h"
#include "io/format/json_reader.h"
#include "io/format/json_writer.h"
#include "runtime/state/checksum.h"

namespace plait::runtime {
namespace {

constexpr std::array<std::string_view, 3> kKindNames{"value", "first_moment", "second_moment"};
constexpr double kMostCount = 9e15;  // whole numbers in JSON
constexpr std::int64_t kMostElements = std::int64_t{1} << 48;
constexpr std::size_t kMostDimensions = 16;
constexpr int kVersion = 2;
constexpr std::string_view kZeros = "0000000000000000";

std::int64_t whole_number(const JsonValue& json) {
  const double value = json.at_least(0);
  if (value > kMostCount || value != static_cast<double>(static_cast<std::int64_t>(value)))
    throw InputError(json.where(), "must be a whole number");
  return static_cast<std::int64_t>(value);
}

std::uint64_t checksum_in(const JsonValue& json) {
  const auto value = checksum_from(json.text());
  if (!value) throw InputError(json.where(), "must be 16 hexadecimal digits");
  return *value;
}

std::vector<std::int64_t> shape_in(const JsonValue& json) {
  std::vector<std::int64_t> shape;
  std::int64_t count = 1;
  for (const JsonValue& size : json.items()) {
    shape.push_back(whole_number(size));
    if (shape.size() > kMostDimensions || shape.back() < 1 || shape.back() > kMostElements / count)
      throw InputError(json.where(), "is not the shape of a parameter");
    count *= shape.back();
  }
  return shape;
}

void check_own_checksum(const std::string& path, const std::string& text,
                        const std::string& digits) {
  std::string zeroed = text;
  const std::size_t at = text.find(digits);  // missing where digits are escaped: not our writing
  if (at != std::string::npos) zeroed.replace(at, digits.size(), kZeros);
  if (at == std::string::npos || checksum_text(checksum_of(zeroed)) != digits)
    throw InputError(path, "is damaged: its checksum is another one");
}

void read_parameter(const JsonValue& item, CheckpointIndex& index) {
  item.allow_only({"name", "shape", "checksums"});
  const std::string name = item.at("name").text();
  if (name.empty() || name.find('/') != std::string::npos || name.find('\0') != std::string::npos)
    throw InputError(item.at("name").where(), "is not the name of a parameter");
  SavedParameter saved{shape_in(item.at("shape")), {}};
  for (const auto& [kind, value] : item.at("checksums").members()) {
    std::size_t number = 0;
    while (number < kKindNames.size() && kKindNames[number] != kind) ++number;
    if (number == kKindNames.size())
      throw InputError(value.where(), "must be value, first_moment or second_moment");
    saved.checksums[static_cast<StateKind>(number)] = checksum_in(value);
  }
  if (!index.parameters.emplace(name, std::move(saved)).second)
    throw InputError(item.at("name").where(), "is there twice");
}

}  // namespace

std::string_view name_of(StateKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::string npy_name(const std::string& parameter, StateKind kind) {
  return kind == StateKind::value ? parameter + ".npy"
                                  : fmt::format("{}.{}.npy", parameter, name_of(kind));
}

std::int64_t count_of(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

// fp32 in C order; padded, so that values begin at a multiple of 64 bytes.
std::string npy_head(const std::vector<std::int64_t>& shape) {
  std::string sizes;
  for (const std::int64_t size : shape) sizes += fmt::format("{}, ", size);
  std::string text =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", sizes);
  const std::size_t before = 10;
  text.append((64 - (before + text.size() + 1) % 64) % 64, ' ');
  text += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(text.size() & 0xff);
  head += static_cast<char>(text.size() >> 8);
  return head + text;
}

std::int64_t npy_size(const std::vector<std::int64_t>& shape) {
  return static_cast<std::int64_t>(npy_head(shape).size()) +
         count_of(shape) * static_cast<std::int64_t>(sizeof(float));
}

std::string index_text(const CheckpointIndex& index) {
  std::vector<std::string> parameters;
  for (const auto& [name, saved] : index.parameters) {
    std::vector<std::string> shape;
    for (const std::int64_t size : saved.shape) shape.push_back(std::to_string(size));
    JsonObject checksums;
    for (const auto& [kind, value] : saved.checksums)
      checksums.text(name_of(kind), checksum_text(value));
    parameters.push_back(JsonObject()
                             .text("name", name)
                             .json("shape", json_list(shape))
                             .json("checksums", checksums.str())
                             .str());
  }
  const CheckpointNote& note = index.note;
  // The checksum comes first: no other text of 16 zeros stands before it.
  std::string text = lay_out_json(JsonObject()
                                      .text("checksum", kZeros)
                                      .number("plait_checkpoint", kVersion)
                                      .number("step", static_cast<double>(note.step))
                                      .text("seed", std::to_string(note.seed))
                                      .text("model", note.model)
                                      .text("tokens", note.tokens)
                                      .number("samples", static_cast<double>(note.samples))
                                      .text("optimizer", note.optimizer)
                                      .json("parameters", json_list(parameters))
                                      .str());
  return text.replace(text.find(kZeros), kZeros.size(), checksum_text(checksum_of(text)));
}

CheckpointIndex index_from(const std::string& path, const std::string& text) {
  const JsonValue root = parse_json(path, text);
  if (const auto version = root.find("plait_checkpoint");
      version && !root.find("checksum") && version->number() == 1)
    throw InputError(path,
                     "was written by an older plait, without checksums: it cannot be "
                     "verified and is not read any more");
  root.allow_only({"checksum", "plait_checkpoint", "step", "seed", "model", "tokens", "samples",
                   "optimizer", "parameters"});
  checksum_in(root.at("checksum"));
  check_own_checksum(path, text, root.at("checksum").text());
  root.at("plait_checkpoint").integer(kVersion, kVersion);
  CheckpointIndex index;
  index.note.step = whole_number(root.at("step"));
  const std::string seed = root.at("seed").text();
  const auto read = std::from_chars(seed.data(), seed.data() + seed.size(), index.note.seed);
  if (read.ec != std::errc() || read.ptr != seed.data() + seed.size())
    throw InputError(root.at("seed").where(), "must be a whole number in quotes");
  index.note.model = root.at("model").text();
  index.note.tokens = root.at("tokens").text();
  index.note.samples = whole_number(root.at("samples"));
  index.note.optimizer = root.at("optimizer").text();
  for (const JsonValue& item : root.at("parameters").items()) read_parameter(item, index);
  return index;
}

}  // namespace plait::runtime
