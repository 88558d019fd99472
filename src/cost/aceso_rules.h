#pragma once

#include <string>

namespace plait {

// Where the parts of a tensor are, as Aceso's program writes it: copies R, and the number of parts
// along three dimensions. Activations of a transformer are [position, sample, feature], scores
// [sample, head, position], images [sample, ..].
struct AcesoLayout {
  int copies = 1;
  int parts[3] = {1, 1, 1};
  bool known = false;  // false: whatever comes is taken
  friend bool operator==(const AcesoLayout&, const AcesoLayout&) = default;
};

// What Aceso's program knows of an op by its name (study of its cost model: model_ops_info.py and
// aceso_cost_model.py of the published code).
struct AcesoRule {
  double activation_share = 1;  // of the measured growth that counts: its "shared space"
  bool starts_segment = false;  // recompute starts anew before it: enc-1st-layernorm, *-conv1
  bool recomputable = true;     // embeddings, losses and the first convolution are not
  bool recompute_first = true;  // false: its recompute rule does not choose it by itself
  int algorithms = 1;           // ways to cut it: qkv and convolutions have two
};

AcesoRule aceso_rule(const std::string& op);

// In which layout an op wants its input, or leaves its output, on tensor x data devices.
AcesoLayout aceso_layout(const std::string& op, int tensor, int data, int algorithm, bool input);

// How one layout becomes another: the collectives of the forward and of the backward pass over so
// many members; "" = none, "split" = each member keeps its part.
struct AcesoReshard {
  const char* forward = "";
  const char* backward = "";
  int members = 1;
};
AcesoReshard aceso_reshard(const AcesoLayout& from, const AcesoLayout& to);

}  // namespace plait
