#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/flags/command.h"
#include "graph/search/search.h"

namespace plait {

// What the words and flags of `plait graph` say.
struct GraphArguments {
  std::vector<std::string> words;  // action, file
  std::string cluster;
  std::string mesh;
  std::string output;
  std::string annotated;
  std::string blocks;
  std::optional<double> memory_gib;
  int threads = 0;
  bool whole = false;
  bool json = false;
  std::optional<int> random;
  std::string plan;
  std::string devices;
  int steps = 3;
  double seconds = 60;  // of solve
};

// One action of the verb; the table stands in graph_verb.cpp.
struct GraphAction {
  std::string_view name;
  int (*run)(const GraphArguments& arguments);
};

int graph_analyze(const GraphArguments& arguments);
int graph_search(const GraphArguments& arguments);
int graph_enumerate(const GraphArguments& arguments);
int graph_run(const GraphArguments& arguments);
int graph_solve(const GraphArguments& arguments);

// The file of an action that takes one.
const std::string& graph_file(const GraphArguments& arguments);
graph::Analysis load_program(const GraphArguments& arguments);
// The meshes to try: the one that was asked for, or all that the devices make.
std::vector<graph::Mesh> load_meshes(const GraphArguments& arguments);
graph::SearchOptions search_options(const GraphArguments& arguments);

}  // namespace plait
