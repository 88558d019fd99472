#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "export/launch.h"
#include "plan/problem.h"
#include "search/space/search.h"

namespace plait {

// A plan in the words of another program, or why that program has no words for it. Exactly one of
// the two is there.
struct Exported {
  std::string text;
  std::string refusal;  // the rest of a sentence: "its schedule is not 1F1B"
};

// All that a program needs to train by a plan, or why it cannot be told.
struct ExportedRun {
  RunScript script{};                 // the command of one node
  std::vector<ExportedFile> files{};  // what the command reads
  // What the files do not say, because the program has no words for it: a sentence each.
  std::vector<std::string> losses{};
  std::string refusal{};  // a sentence without its full stop; "" = the rest is there
};

// At the peak of Transformer Engine's loss: logits in 16 bits and, out of place, their gradient.
inline constexpr int kFusedLogitBytes = 4;

// Which settings of the job's software (software_flags.cpp) the files say.
struct SaidSettings {
  bool overlap = false;
  bool graph_capture = false;
  bool zero_group = false;
  bool pure_states = false;
  bool gradient_bytes = false;  // 2 or 4
  bool reduce_bytes = false;    // 2 or 4
  bool logit_bytes = false;     // 4: a fused loss
};

// A program that plans are written for: as rows of a table or a text (`write`), as files that start
// a training (`run`), or both.
struct Exporter {
  std::string_view name;     // "metis"; where it runs plans, that of its row in plan/target.h
  std::string_view summary;  // one line for the help and the docs
  std::string_view heading;  // of a table with one row for each plan; "" = a text of one plan
  // `rank` counts the plans that have been written, from 1. nullptr = it has no such form.
  Exported (*write)(const Problem& problem, const RankedPlan& ranked, int rank) = nullptr;
  // Pins what the program has no words for and the user left free, so that a search for plans to
  // write does not find others; nullptr = nothing.
  void (*narrow)(Pins& pins) = nullptr;
  // Of programs that read one file for each plan; nullptr = plans are rows, or one text.
  std::string (*file_name)(const Problem& problem, const RankedPlan& ranked) = nullptr;
  // The plan passes check_plan(), and why_not(target_of(..), ..) has nothing against it. nullptr =
  // no such form.
  ExportedRun (*run)(const Problem& problem, const Plan& plan) = nullptr;
  // Why the files cannot say what the network or the job is, which no plan can help; nullptr = they
  // need not.
  std::string (*network)(const Problem& problem) = nullptr;
  // Takes from the program's row in plan/target.h what the files cannot say, so that why_not()
  // words the refusal and searches leave it out; nullptr = nothing.
  void (*limit)(const Problem& problem, Target& target) = nullptr;
  std::string_view file = "plans.csv";  // the name of what `write` gives, in a folder
  SaidSettings says{};
};

// The one table of exporters. To add one: write a file, add a row.
std::span<const Exporter> exporters();
// What the exporter can write for the problem: its program's row, limited; the free space where the
// program has none.
Target target_of(const Exporter& exporter, const Problem& problem);
// Why the exporter has no words for the plan; "" where it has, as far as is known before it is run.
std::string refused(const Exporter& exporter, const Problem& problem, const Plan& plan);
// The same with what its files turn out not to say; "" too where it writes none.
std::string not_written(const Exporter& exporter, const Problem& problem, const Plan& plan);
const Exporter* exporter_named(std::string_view name);  // nullptr = there is none
std::vector<std::string> exporter_names();
// What the prediction is told of the software and the files do not say: a sentence each.
std::vector<std::string> unsaid_settings(const Exporter& exporter, const Problem& problem,
                                         const Plan& plan);
// Devices over which the states of each parameter are cut: those that have copies of it, or a part
// of them (hybrid sharding); 1 where nothing is cut.
int sharding_group(const Problem& problem, const Plan& plan);
// Whether the prediction has gradients summed beside the backward pass.
bool overlaps_gradients(const Problem& problem, const Plan& plan);
// Whether the prediction has tensor parallelism run beside the products that it belongs to; beside
// weight gradients it always does.
bool overlaps_tensors(const Problem& problem, const Plan& plan);
// Whether no tensor group has devices of two nodes, where there is one layout.
bool tensor_groups_in_nodes(const Problem& problem, const Plan& plan);
// Of programs whose network the user's program builds: what it adds for LoRA. "" = nothing.
std::string adapters_to_add(const Job& job);
std::vector<std::string> format_names();  // those that have rows or a text of one plan

// Several plans in the words of one program.
struct ExportedPlans {
  std::string format;                 // Exporter::name
  std::string text;                   // the heading and the plans that could be written
  int written = 0;                    // plans
  std::vector<std::string> left_out;  // a sentence for each of the others
  std::vector<std::pair<std::string, std::string>> files{};  // name and text of each plan
};
// A table has all plans, a text the first that can be written.
ExportedPlans export_plans(const Exporter& exporter, const Problem& problem,
                           std::span<const RankedPlan> plans);

}  // namespace plait
