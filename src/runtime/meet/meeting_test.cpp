#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/error.h"
#include "io/format/test_folder.h"
#include "runtime/launch/launcher.h"
#include "runtime/launch/run_secret.h"
#include "runtime/meet/meeting_client.h"
#include "runtime/meet/meeting_server.h"
#include "runtime/meet/sockets.h"

namespace plait::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// TCP on the loopback, as ranks of several machines meet.
MeetingPlace tcp_place() {
  MeetingPlace place = meeting_place({.world = 3, .local_world = 3, .secret = new_secret()});
  place.network = true;
  place.host = "127.0.0.1";
  place.interface = "lo";
  place.port = free_port();
  return place;
}

class Sentences {
 public:
  Tell tell() {
    return [this](const std::string& sentence) {
      const std::lock_guard lock(mutex_);
      all_ += sentence + "\n";
    };
  }
  bool say(const std::string& words, milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        if (all_.find(words) != std::string::npos) return true;
      }
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(milliseconds(10));
    }
  }

 private:
  std::mutex mutex_;
  std::string all_;
};

std::string fault_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no fault";
}

// What the server answers to a stranger who says this; until it closes the connection.
std::string heard_by_stranger(const MeetingPlace& place, std::string_view words) {
  std::string why, heard;
  const Descriptor socket = connect_to(place, why);
  const auto deadline = std::chrono::steady_clock::now() + seconds(20);
  send_all(socket.get(), words, deadline);
  receive_all(socket.get(), 1 << 20, heard, deadline);
  return heard;
}

TEST(Meeting, RanksSeeEachOthersKeysOverBothKindsOfSocket) {
  const MeetingPlace local =
      meeting_place({.world = 2, .local_world = 2, .port = 1, .secret = new_secret()});
  for (const MeetingPlace& place : {local, tcp_place()}) {
    const MeetingServer server(place, nullptr);
    MeetingClient first(place, 0, seconds(5)), second(place, 1, seconds(5));
    EXPECT_EQ(first.find("key"), std::nullopt);
    first.set("key", std::string("a\0b", 3));
    EXPECT_EQ(second.find("key"), std::string("a\0b", 3));
    EXPECT_EQ(first.add("sum", 3), 3);
    EXPECT_EQ(second.add("sum", -5), -2);
    EXPECT_EQ(second.find("sum"), "-2");
    EXPECT_EQ(first.compare_set("once", "", "one"), "one");
    EXPECT_EQ(second.compare_set("once", "", "two"), "one");
    EXPECT_EQ(second.compare_set("once", "one", "two"), "two");
    EXPECT_EQ(first.count(), 3);
    EXPECT_TRUE(first.remove("key"));
    EXPECT_FALSE(first.remove("key"));
    EXPECT_EQ(first.address(), "127.0.0.1");
  }
}

TEST(Meeting, AWaitEndsWhenTheLastKeyComesOrWithTime) {
  const MeetingPlace place = tcp_place();
  const MeetingServer server(place, nullptr);
  MeetingClient first(place, 0, seconds(5)), second(place, 1, seconds(5));
  EXPECT_FALSE(first.wait({"a"}, milliseconds(30)));
  std::thread other([&] {
    second.set("b", "");
    second.set("a", "");
  });
  EXPECT_TRUE(first.wait({"a", "b"}, seconds(30)));
  other.join();
  EXPECT_TRUE(first.wait({}, milliseconds(0)));
}

// 2 MiB: more than a socket takes at once.
TEST(Meeting, LargeValuesArriveWhole) {
  const MeetingPlace place = tcp_place();
  const MeetingServer server(place, nullptr);
  MeetingClient first(place, 0, seconds(5)), second(place, 1, seconds(5));
  std::string large(2 << 20, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31);
  first.set("large", large);
  EXPECT_EQ(second.find("large"), large);
}

TEST(Meeting, RankZeroMayComeLast) {
  const MeetingPlace place = tcp_place();
  std::thread early([&] { MeetingClient(place, 1, seconds(30)).set("here", "1"); });
  std::this_thread::sleep_for(milliseconds(200));
  const MeetingServer server(place, nullptr);
  EXPECT_TRUE(MeetingClient(place, 0, seconds(5)).wait({"here"}, seconds(30)));
  early.join();
}

TEST(Meeting, StrangersAreCutOffToldOfAndDisturbNobody) {
  const MeetingPlace place = tcp_place();
  Sentences sentences;
  const MeetingServer server(place, sentences.tell());
  MeetingClient rank(place, 0, seconds(5));
  // Rubbish: no more than the greeting and the nonce comes back.
  EXPECT_LE(heard_by_stranger(place, "GET / HTTP/1.1\r\n\r\n").size(), kServerHello);
  EXPECT_TRUE(sentences.say("speaks another protocol", seconds(5)));
  // Well formed, with another secret: refused, without a proof that the server knows its own.
  MeetingPlace other = place;
  other.secret = new_secret();
  EXPECT_NE(fault_of([&] { MeetingClient(other, 1, seconds(5)); }).find("is not the secret"),
            std::string::npos);
  EXPECT_TRUE(sentences.say("showed a wrong secret", seconds(5)));
  // Requests without a greeting.
  EXPECT_LE(
      heard_by_stranger(place, MessageWriter('s').text("plait/failed").text("0").framed()).size(),
      kServerHello);
  // A rank that the run does not have.
  EXPECT_NE(fault_of([&] { MeetingClient(place, 3, seconds(5)); }), "no fault");
  // Silence.
  std::string why;
  const Descriptor silent = connect_to(place, why);
  EXPECT_TRUE(sentences.say("has not shown the secret of the run within", seconds(10)));
  EXPECT_EQ(rank.find("plait/failed"), std::nullopt);
  EXPECT_EQ(rank.count(), 0);
}

TEST(Meeting, HundredsOfSilentStrangersKeepNoRankOut) {
  const MeetingPlace place = tcp_place();
  const MeetingServer server(place, nullptr);
  std::vector<Descriptor> strangers;
  std::string why;
  for (int i = 0; i < 300; ++i) strangers.push_back(connect_to(place, why));
  MeetingClient rank(place, 0, seconds(5));
  rank.set("key", "value");
  EXPECT_EQ(rank.find("key"), "value");
}

// kGreetingLimit is 6 s.
TEST(Meeting, APortThatIsHeldInSilenceIsNoticedWithinTenSeconds) {
  const MeetingPlace place = tcp_place();
  const Listening stranger = listen_at(place);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NE(
      fault_of([&] { MeetingClient(place, 1, std::chrono::minutes(5)); }).find("does not greet"),
      std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(10));
  EXPECT_NE(fault_of([&] { MeetingServer(place, nullptr); }).find("another program has the port"),
            std::string::npos);
}

TEST(Meeting, AServerWithAnotherSecretIsNotBelieved) {
  const MeetingPlace place = tcp_place();
  const Listening stranger = listen_at(place);
  std::string words;
  std::thread serve([&] {
    pollfd wait{stranger.socket.get(), POLLIN, 0};
    poll(&wait, 1, 10'000);
    const Descriptor socket(accept(stranger.socket.get(), nullptr, nullptr));
    const auto deadline = std::chrono::steady_clock::now() + seconds(5);
    send_all(socket.get(), std::string(kGreeting) + random_bytes(kNonceBytes), deadline);
    receive_all(socket.get(), kRankHello, words, deadline);
    send_all(socket.get(), kWelcome + random_bytes(32), deadline);
  });
  EXPECT_NE(fault_of([&] { MeetingClient(place, 1, seconds(5)); }).find("does not know the secret"),
            std::string::npos);
  serve.join();
  EXPECT_EQ(words.find(place.secret), std::string::npos);
}

TEST(Meeting, RanksOfOneMachineDoNotUseTheNetworkAndOthersNeedASecret) {
  const MeetingPlace loopback =
      meeting_place({.world = 2, .local_world = 1, .address = "127.0.0.1", .port = 9});
  EXPECT_FALSE(loopback.network);
  EXPECT_FALSE(meeting_place({.world = 2, .local_world = 2, .address = "node7"}).network);
  RankPlace far{.world = 4, .local_world = 2, .address = "node7", .launcher = "Slurm"};
  EXPECT_NE(fault_of([&] { meeting_place(far); }).find("PLAIT_RUN_SECRET"), std::string::npos);
  far.secret = "0123456789abcdef";
  EXPECT_TRUE(meeting_place(far).network);
}

TEST(RunSecret, ComesFromTheEnvironmentOrAPrivateFile) {
  const samples::TestFolder folder;
  const std::string path = folder.path("secret");
  std::ofstream(path) << "0123456789abcdef\n";
  std::map<std::string, std::string> values{{kSecretFileVariable, path}};
  const Variables variables = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
  chmod(path.c_str(), 0644);
  EXPECT_NE(fault_of([&] { secret_of_run(variables); }).find("chmod 600"), std::string::npos);
  chmod(path.c_str(), 0600);
  EXPECT_EQ(secret_of_run(variables), "0123456789abcdef");
  values[kSecretVariable] = "short";
  EXPECT_NE(fault_of([&] { secret_of_run(variables); }).find("has 5"), std::string::npos);
  values.clear();
  EXPECT_EQ(secret_of_run(variables), "");
  EXPECT_EQ(new_secret().size(), 64U);
  EXPECT_NE(new_secret(), new_secret());
}

}  // namespace
}  // namespace plait::runtime
