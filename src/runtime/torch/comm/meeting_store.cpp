#include "runtime/torch/comm/meeting_store.h"

namespace plait::runtime {
namespace {

constexpr std::chrono::seconds kPatience(60);  // for a second connection to a server that is there

std::string text_of(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

std::vector<std::uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace

MeetingStore::MeetingStore(MeetingPlace place, int rank, std::unique_ptr<MeetingClient> client)
    : place_(std::move(place)), rank_(rank), client_(std::move(client)) {}

void MeetingStore::set(const std::string& key, const std::vector<std::uint8_t>& value) {
  client_->set(key, text_of(value));
}

std::vector<std::uint8_t> MeetingStore::compareSet(const std::string& key,
                                                   const std::vector<std::uint8_t>& expected,
                                                   const std::vector<std::uint8_t>& desired) {
  return bytes_of(client_->compare_set(key, text_of(expected), text_of(desired)));
}

std::vector<std::uint8_t> MeetingStore::get(const std::string& key) {
  wait({key});
  return bytes_of(client_->find(key).value_or(""));
}

std::int64_t MeetingStore::add(const std::string& key, std::int64_t number) {
  return client_->add(key, number);
}

bool MeetingStore::deleteKey(const std::string& key) { return client_->remove(key); }

bool MeetingStore::check(const std::vector<std::string>& keys) {
  return client_->wait(keys, std::chrono::milliseconds(0));
}

std::int64_t MeetingStore::getNumKeys() { return client_->count(); }

void MeetingStore::wait(const std::vector<std::string>& keys) { wait(keys, timeout_); }

void MeetingStore::wait(const std::vector<std::string>& keys,
                        const std::chrono::milliseconds& patience) {
  if (!client_->wait(keys, patience))
    throw MeetingFault("another rank has not come to the meeting in time (" +
                       (keys.empty() ? std::string() : keys.front()) + ")");
}

c10::intrusive_ptr<c10d::Store> MeetingStore::clone() {
  return c10::make_intrusive<MeetingStore>(
      place_, rank_, std::make_unique<MeetingClient>(place_, rank_, kPatience));
}

}  // namespace plait::runtime
