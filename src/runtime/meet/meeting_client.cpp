#include "runtime/meet/meeting_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "runtime/launch/run_secret.h"

namespace plait::runtime {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kRetry(50);
// A wait is asked for in pieces, so that a server that died without a word is noticed.
constexpr std::chrono::milliseconds kPiece(10'000);

template <typename Value>
Value needed(std::optional<Value> value) {
  if (!value) throw MeetingFault("rank 0 sent an answer that is cut short");
  return std::move(*value);
}

}  // namespace

MeetingClient::MeetingClient(const MeetingPlace& place, int rank, Duration patience)
    : place_(place), rank_(rank) {
  const Clock::time_point deadline = Clock::now() + patience;
  std::string why;
  while (!(socket_ = connect_to(place_, why))) {
    if (Clock::now() >= deadline)
      throw MeetingFault(
          fmt::format("nobody listens at {}, where rank 0 should be: {}", place_.in_words(), why));
    std::this_thread::sleep_for(kRetry);
  }
  address_ = own_address(socket_.get());
  greet();
}

void MeetingClient::greet() {
  const Clock::time_point deadline = Clock::now() + kGreetingLimit;
  const auto stranger = [&](const char* what) {
    throw MeetingFault(
        fmt::format("a program at {} {}: it is not rank 0 of this run. Set "
                    "MASTER_PORT to a port that is free",
                    place_.in_words(), what));
  };
  std::string hello, verdict;
  if (!receive_all(socket_.get(), kServerHello, hello, deadline))
    stranger("accepts connections but does not greet");
  if (!hello.starts_with(kGreeting)) stranger("speaks another protocol");
  const std::string_view nonce = std::string_view(hello).substr(kGreeting.size());
  const std::string mine = random_bytes(kNonceBytes);
  const std::string number = four_bytes(static_cast<std::uint32_t>(rank_));
  const std::string reply = std::string(kGreeting) + mine + number +
                            std::string(as_text(proof_of_rank(place_.secret, nonce, mine, number)));
  if (!send_all(socket_.get(), reply, deadline) ||
      !receive_all(socket_.get(), kVerdict, verdict, deadline))
    stranger("does not finish the greeting");
  if (verdict[0] == kRefusal)
    throw InputError(std::string("environment variable ") + kSecretVariable,
                     fmt::format("is not the secret of rank 0 at {}: set the same for all ranks",
                                 place_.in_words()));
  Digest proof{};
  std::copy(verdict.begin() + 1, verdict.end(), proof.begin());
  if (!same_digest(proof, proof_of_server(place_.secret, nonce, mine)))
    stranger("does not know the secret of this run");
}

MessageReader MeetingClient::ask(const MessageWriter& request, Duration wait) {
  const Clock::time_point deadline = Clock::now() + wait + answer_limit;
  std::string length;
  const bool answered = send_all(socket_.get(), request.framed(), deadline) &&
                        receive_all(socket_.get(), 4, length, deadline) &&
                        from_four_bytes(length) <= kLargestMessage &&
                        receive_all(socket_.get(), from_four_bytes(length), answer_, deadline);
  if (!answered) {
    socket_ = Descriptor();  // half an answer must not be taken for the next one
    throw MeetingFault("rank 0 does not answer at " + place_.in_words());
  }
  return MessageReader(answer_);
}

void MeetingClient::set(const std::string& key, std::string_view value) {
  const std::lock_guard lock(mutex_);
  ask(MessageWriter(static_cast<char>(Request::set)).text(key).text(value));
}

std::optional<std::string> MeetingClient::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  MessageReader answer = ask(MessageWriter(static_cast<char>(Request::get)).text(key));
  return needed(answer.kind()) == 0 ? std::nullopt : std::optional(needed(answer.text()));
}

bool MeetingClient::wait(const std::vector<std::string>& keys, Duration patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  const std::lock_guard lock(mutex_);
  for (;;) {
    const auto left = std::chrono::duration_cast<Duration>(deadline - Clock::now());
    const Duration piece = std::clamp(left, Duration(0), kPiece);
    MessageWriter request(static_cast<char>(Request::wait));
    request.number(piece.count());
    for (const std::string& key : keys) request.text(key);
    if (needed(ask(request, piece).kind()) != 0) return true;
    if (Clock::now() >= deadline) return false;
  }
}

std::int64_t MeetingClient::add(const std::string& key, std::int64_t number) {
  const std::lock_guard lock(mutex_);
  MessageReader answer =
      ask(MessageWriter(static_cast<char>(Request::add)).text(key).number(number));
  answer.kind();
  return needed(answer.number());
}

std::string MeetingClient::compare_set(const std::string& key, std::string_view expected,
                                       std::string_view desired) {
  const std::lock_guard lock(mutex_);
  MessageReader answer = ask(MessageWriter(static_cast<char>(Request::compare_set))
                                 .text(key)
                                 .text(expected)
                                 .text(desired));
  answer.kind();
  return needed(answer.text());
}

bool MeetingClient::remove(const std::string& key) {
  const std::lock_guard lock(mutex_);
  return needed(ask(MessageWriter(static_cast<char>(Request::remove)).text(key)).kind()) != 0;
}

std::int64_t MeetingClient::count() {
  const std::lock_guard lock(mutex_);
  MessageReader answer = ask(MessageWriter(static_cast<char>(Request::count)));
  answer.kind();
  return needed(answer.number());
}

}  // namespace plait::runtime
