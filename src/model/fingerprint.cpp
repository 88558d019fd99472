#include "model/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace plait {

std::string hashed(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

namespace {

// Fingerprints in profile files were made when one number stood for several fields: it goes on to
// do so in them.
double parts_of(const Op& op) {
  if (op.kind == OpKind::norm) return op.shares_input ? 0 : op.scale_in_fp32 ? 2 : 1;
  return op.kind == OpKind::elementwise ? op.branches : op.matrices;
}

Function function_of(const Op& op) { return op.writes_scores ? Function::add : op.function; }

}  // namespace

std::string fingerprint(const Model& model, const LayerKind& kind) {
  const double positions = std::max(1, model.sequence_length);
  std::string text = fmt::format("{}{}", model.causal, model.dropout);
  for (const Op& op : kind.ops) {
    const bool attention = op.kind == OpKind::attention;
    text += fmt::format("|{} {} {} {} {} {} {} {} {}", static_cast<int>(op.kind),
                        static_cast<int>(op.split), static_cast<int>(function_of(op)), op.inner,
                        attention ? op.kv_count / op.count : op.columns,
                        attention ? op.count * op.rows / positions : op.count, parts_of(op),
                        op.parameters, attention ? 0 : op.rows / positions);
    if (op.kind == OpKind::elementwise) text += fmt::format(" {}", op.moved / positions);
  }
  return hashed(text);
}

}  // namespace plait
