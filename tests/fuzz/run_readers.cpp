#include "fuzz/run_readers.h"

#include <algorithm>
#include <cmath>

#include "fuzz/oracles.h"
#include "io/format/json_reader.h"
#include "io/graph/profile_json.h"
#include "runtime/profiler/profile.h"
#include "runtime/rank_request.h"
#include "runtime/state/checkpoint_index.h"
#include "runtime/state/checksum.h"
#include "runtime/state/token_file.h"
#include "runtime/trial/run_log.h"
#include "runtime/trial/trial_rows.h"

namespace plait::fuzz {
namespace {

// The text with the right checksum, without which nothing behind it is ever read.
std::string sealed(std::string text) {
  constexpr std::string_view kBefore = "\"checksum\": \"";
  constexpr std::size_t kDigits = 16;
  const std::size_t begin = text.find(kBefore);
  if (begin == text.npos || text.size() < begin + kBefore.size() + kDigits) return text;
  text.replace(begin + kBefore.size(), kDigits, std::string(kDigits, '0'));
  return text.replace(begin + kBefore.size(), kDigits,
                      runtime::checksum_text(runtime::checksum_of(text)));
}

}  // namespace

void read_trials(const std::string& bytes) {
  const runtime::TrialRows rows(file_of("trials.csv", bytes));
}

void read_log(const std::string& bytes) {
  runtime::RunLog log({}, 8);
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    log.read(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const Seconds step : log.steps())
    promise(std::isfinite(step.value), "a step of a log takes no finite time");
}

void read_rank_request(const std::string& bytes) {
  const JsonValue json = parse_json("request.json", bytes);
  if (!runtime::is_rank_request(json)) return;
  const std::string written = runtime::rank_request_json(runtime::rank_request_from(json));
  promise(again([&] {
            return runtime::rank_request_json(
                runtime::rank_request_from(parse_json("request.json", written)));
          }) == written,
          "a rank's request is another one when it is written and read");
}

void read_tokens(const std::string& bytes) {
  runtime::read_token_index(file_of("tokens.json", bytes));
}

void read_checkpoint(const std::string& bytes) {
  const auto index = runtime::index_from("checkpoint.json", sealed(bytes));
  const std::string written = runtime::index_text(index);
  promise(again([&] {
            return runtime::index_text(runtime::index_from("checkpoint.json", written));
          }) == written,
          "an index of a checkpoint is another one when it is written and read");
  for (const auto& [name, saved] : index.parameters)
    promise(runtime::npy_size(saved.shape) > 0, "a parameter has no size");
}

void read_points(const std::string& bytes) {
  runtime::PointCache points(file_of("points.jsonl", bytes));
}

void read_times_of_graph(const std::string& bytes) {
  for (const auto& [piece, time] : read_graph_profile(file_of("graph.json", bytes)).blocks)
    promise(std::isfinite(time.value), "a block of a profile takes no finite time");
}

}  // namespace plait::fuzz
