#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cost/aceso_table.h"
#include "plan/problem.h"

namespace plait {

// A model of Aceso's experiments by the name it has there; "gpt_1_3B" is --model_name gpt with
// --model_size 1_3B.
struct AcesoModel {
  std::string name;         // "t5_22B"
  std::string family;       // "t5"
  std::string table;        // whose op files it uses: "t5_11B"
  std::vector<int> layers;  // one number; of a ResNet, blocks of each of its four parts
  // What else its configuration files say of it, by key: seq_length, hidden_size ..
  std::vector<std::pair<std::string, int>> fields;

  bool is_image_model() const { return family == "resnet"; }
  int sequence() const;  // 1 for images
};

// The one table of Aceso's models. nullptr = there is none of this name.
const AcesoModel* find_aceso_model(const std::string& name);
std::vector<std::string> aceso_model_names();

// "aceso:gpt_1_3B", with so many layers instead of its own. InputError says which names there are,
// and that scale-layer needs `layers`.
bool is_aceso_name(const std::string& name);
AcesoModel aceso_model_named(const std::string& name, std::optional<int> layers);

// The model as a chain of ops, with sizes from the table: those of one device that does all of the
// work. InputError where the table lacks a file of tensor degree 1.
Model chain_of_ops(const AcesoTable& table, const std::vector<std::string>& ops, double bytes);

// Gives the problem the model and what the database measured of it. The database is taken as
// measured on the cluster's devices where they are of one type; of several, on those of the family
// that Aceso used. A warning says so.
void load_aceso_model(const AcesoModel& named, const std::string& database, Problem& problem,
                      std::vector<std::string>& warnings);

}  // namespace plait
