#include "runtime/meet/meeting_keys.h"

#include <algorithm>
#include <charconv>

#include "runtime/meet/wire.h"

namespace plait::runtime {
namespace {

std::int64_t number_in(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::int64_t wrapped_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace

bool MeetingKeys::has_all(const std::vector<std::string>& keys) const {
  return std::all_of(keys.begin(), keys.end(),
                     [this](const std::string& key) { return values_.contains(key); });
}

std::optional<std::string> MeetingKeys::answer(std::string_view request) {
  MessageReader reader(request);
  const auto kind = reader.kind();
  if (kind == static_cast<char>(Request::count))
    return MessageWriter(1).number(static_cast<std::int64_t>(values_.size())).framed();
  const auto key = reader.text();
  if (!kind || !key) return std::nullopt;
  const auto found = values_.find(*key);
  const bool there = found != values_.end();
  switch (static_cast<Request>(*kind)) {
    case Request::set:
      if (auto value = reader.text()) {
        values_[*key] = std::move(*value);
        return MessageWriter(1).framed();
      }
      return std::nullopt;
    case Request::get:
      return there ? MessageWriter(1).text(found->second).framed() : MessageWriter(0).framed();
    case Request::add: {
      const auto number = reader.number();
      if (!number) return std::nullopt;
      const std::int64_t sum = wrapped_sum(there ? number_in(found->second) : 0, *number);
      values_[*key] = std::to_string(sum);
      return MessageWriter(1).number(sum).framed();
    }
    case Request::compare_set: {
      const auto expected = reader.text();
      auto desired = reader.text();
      if (!expected || !desired) return std::nullopt;
      if (!there && !expected->empty()) return MessageWriter(1).text(*expected).framed();
      if (!there || found->second == *expected) values_[*key] = std::move(*desired);
      return MessageWriter(1).text(values_[*key]).framed();
    }
    case Request::remove:
      if (there) values_.erase(found);
      return MessageWriter(there ? 1 : 0).framed();
    default:
      return std::nullopt;
  }
}

}  // namespace plait::runtime
