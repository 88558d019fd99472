#include "graph/hlo/attributes.h"

#include <cctype>

namespace plait::graph {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// What stands behind `key=` up to a blank or the end.
std::string_view field(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    const std::size_t value = at + key.size();
    const bool begins =
        at == 0 || text[at - 1] == '{' || text[at - 1] == ' ' || text[at - 1] == ',';
    if (!begins || value >= text.size() || text[value] != '=') continue;
    const std::size_t end = text.find_first_of(" }", value);
    return text.substr(value + 1, end == text.npos ? text.npos : end - value - 1);
  }
  return {};
}

std::string_view quoted_after(std::string_view text, std::string_view key) {
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    const bool begins =
        at == 0 || text[at - 1] == '{' || text[at - 1] == ' ' || text[at - 1] == ',';
    const std::size_t value = at + key.size();
    if (!begins || !text.substr(value).starts_with("=\"")) continue;
    const std::size_t from = value + 2;
    std::size_t to = from;
    while (to < text.size() && text[to] != '"') to += text[to] == '\\' ? 2 : 1;
    return text.substr(from, to - from);
  }
  return {};
}

// "bf01": position of each letter or digit.
bool split_labels(std::string_view text, char first, char second, int* a, int* b,
                  std::vector<int>& spatial) {
  *a = *b = -1;
  spatial.assign(text.size() < 2 ? 0 : text.size() - 2, -1);
  for (int i = 0; i < static_cast<int>(text.size()); ++i) {
    const char c = text[i];
    if (c == first) {
      *a = i;
    } else if (c == second) {
      *b = i;
    } else if (is_digit(c) && static_cast<std::size_t>(c - '0') < spatial.size()) {
      spatial[c - '0'] = i;
    } else {
      return false;
    }
  }
  if (*a < 0 || *b < 0) return false;
  for (const int s : spatial)
    if (s < 0) return false;
  return true;
}

}  // namespace

std::vector<std::int64_t> integers_in(std::string_view text) {
  std::vector<std::int64_t> all;
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_digit(text[i])) {
      ++i;
      continue;
    }
    const bool negative = i > 0 && text[i - 1] == '-';
    std::int64_t value = 0;
    for (; i < text.size() && is_digit(text[i]); ++i)
      if (value < kMost) value = value * 10 + (text[i] - '0');
    all.push_back(negative ? -value : value);
  }
  return all;
}

std::vector<std::int64_t> integers(const Instruction& it, std::string_view key) {
  const std::string* text = it.attribute(key);
  return text == nullptr ? std::vector<std::int64_t>{} : integers_in(*text);
}

std::int64_t integer_or(const Instruction& it, std::string_view key, std::int64_t otherwise) {
  const std::vector<std::int64_t> all = integers(it, key);
  return all.empty() ? otherwise : all.front();
}

std::vector<SliceDim> slice_dims(const Instruction& it) {
  std::vector<SliceDim> dims;
  const std::string* text = it.attribute("slice");
  if (text == nullptr) return dims;
  for (std::size_t at = text->find('['); at != std::string::npos; at = text->find('[', at + 1)) {
    const std::size_t end = text->find(']', at);
    const auto numbers = integers_in(std::string_view(*text).substr(at, end - at));
    if (numbers.size() < 2) return {};
    dims.push_back({numbers[0], numbers[1], numbers.size() > 2 ? numbers[2] : 1});
  }
  return dims;
}

std::vector<std::int64_t> window_field(const Instruction& it, std::string_view key, int rank,
                                       std::int64_t otherwise) {
  std::vector<std::int64_t> found;
  if (const std::string* text = it.attribute("window"); text != nullptr)
    found = integers_in(field(*text, key));
  const std::size_t wanted = key == "pad" ? 2 * rank : rank;
  if (found.size() != wanted) found.assign(wanted, otherwise);
  return found;
}

ConvolutionDims convolution_dims(const Instruction& it) {
  ConvolutionDims dims;
  const std::string* text = it.attribute("dim_labels");
  if (text == nullptr) return dims;
  const std::size_t under = text->find('_');
  const std::size_t arrow = text->find("->");
  if (under == std::string::npos || arrow == std::string::npos || arrow < under) return dims;
  const std::string_view all = *text;
  dims.valid = split_labels(all.substr(0, under), 'b', 'f', &dims.lhs_batch, &dims.lhs_feature,
                            dims.lhs_spatial) &&
               split_labels(all.substr(under + 1, arrow - under - 1), 'i', 'o', &dims.rhs_input,
                            &dims.rhs_output, dims.rhs_spatial) &&
               split_labels(all.substr(arrow + 2), 'b', 'f', &dims.out_batch, &dims.out_feature,
                            dims.out_spatial) &&
               dims.rhs_spatial.size() == dims.lhs_spatial.size() &&
               dims.out_spatial.size() == dims.lhs_spatial.size();
  return dims;
}

std::string frontend_attribute(const Instruction& it, std::string_view key) {
  const std::string* text = it.attribute("frontend_attributes");
  return text == nullptr ? "" : std::string(quoted_after(*text, key));
}

std::string op_name(const Instruction& it) {
  const std::string* text = it.attribute("metadata");
  return text == nullptr ? "" : std::string(quoted_after(*text, "op_name"));
}

std::string custom_call_target(const Instruction& it) {
  const std::string* text = it.attribute("custom_call_target");
  if (text == nullptr || text->size() < 2) return "";
  return text->front() == '"' ? text->substr(1, text->size() - 2) : *text;
}

std::vector<Alias> aliases(const Module& module) {
  std::vector<Alias> all;
  const std::string* text = module.attribute("input_output_alias");
  if (text == nullptr) return all;
  // { {0}: (3, {}, may-alias), ... }
  const std::string_view view = *text;
  std::size_t at = 1;
  for (;;) {
    const std::size_t open = view.find('{', at);
    const std::size_t close = open == view.npos ? view.npos : view.find('}', open);
    const std::size_t paren = close == view.npos ? view.npos : view.find('(', close);
    const std::size_t path = paren == view.npos ? view.npos : view.find('{', paren);
    const std::size_t end = path == view.npos ? view.npos : view.find('}', path);
    if (end == view.npos) return all;
    Alias alias;
    alias.output = integers_in(view.substr(open, close - open));
    const auto number = integers_in(view.substr(paren, path - paren));
    if (number.empty()) return all;
    alias.parameter = number.front();
    alias.parameter_path = integers_in(view.substr(path, end - path));
    all.push_back(std::move(alias));
    at = view.find(')', end);
    if (at == view.npos) return all;
  }
}

}  // namespace plait::graph
