#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "runtime/launch/rank.h"

namespace plait::runtime {

// The ranks of a run cannot meet: somebody else is at the place, or nobody.
class MeetingFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Where the ranks of a run meet. Ranks of one machine meet at a Unix socket, which no other machine
// reaches and whose two ends know each other's user; others at a TCP port, where each side proves
// that it knows the secret of the run before the other believes anything.
struct MeetingPlace {
  int world = 1;
  bool network = false;  // else one machine
  std::string name;      // of the Unix socket, in Linux' abstract namespace
  std::string host;      // of rank 0
  int port = 0;
  std::string interface;  // that ranks listen on; "" = the one that leads to rank 0
  std::string secret;     // "" = none: the ranks of one machine trust their user

  std::string in_words() const;  // "10.0.0.1:29500"
};

// InputError for ranks on several machines without a secret.
MeetingPlace meeting_place(const RankPlace& place);

// A sentence for people: who was turned away, and where ranks meet.
using Tell = std::function<void(const std::string& sentence)>;

}  // namespace plait::runtime
