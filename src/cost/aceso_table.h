#pragma once

#include <compare>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"

namespace plait {

// A row of gpt_1_3B_mbs2_tp4_algo0.csv in SI units: one op on one device of a tensor group, its
// communication included. The files have microseconds, and MB of 2^20 bytes.
struct AcesoOp {
  Seconds forward;
  Seconds backward;
  Bytes input;   // what a cut before it must send, tensors that only pass by included
  Bytes output;  // what a cut after it must send
  Bytes weights;
  Bytes activations;         // what memory has grown by after its forward pass, its output included
  Bytes forward_reserved;    // by which the allocator's pool grows beyond that
  Bytes backward_reserved;   // by which it grows in the backward pass that follows
  bool did_not_fit = false;  // into memory, when it was to be measured: times are not there
};

struct AcesoPoint {
  int micro_batch = 1;  // on one replica
  int tensor = 1;
  int algorithm = 0;  // which way the tensor group cuts it
  friend auto operator<=>(const AcesoPoint&, const AcesoPoint&) = default;
};

// All files of one model and size, and those of the links.
struct AcesoTable {
  std::string name;  // "gpt_1_3B"
  std::map<AcesoPoint, std::map<std::string, AcesoOp>> points;
  // prim_*_Ngpus.csv: by collective and members, the time by size in whole MB.
  std::map<std::pair<std::string, int>, std::map<long long, Seconds>> collectives;
  // p2p_*_node.csv: GB/s of messages of 1, 2, 4 .. MB. Without the second, the first counts.
  std::vector<double> intra_node;
  std::vector<double> inter_node;
};

// "gpt" of "gpt_1_3B".
std::string aceso_family(const std::string& name);

}  // namespace plait
