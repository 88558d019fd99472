#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/problem.h"
#include "search/space/search.h"

namespace plait {

// A plan in the words of another program, or why that program has no words for it. Exactly one of
// the two is there.
struct Exported {
  std::string text;
  std::string refusal;  // the rest of a sentence: "its schedule is not 1F1B"
};

// A program that plans are written for.
struct Exporter {
  std::string_view name;     // "metis"
  std::string_view summary;  // one line for the help and the docs
  std::string_view heading;  // of a table with one row for each plan; "" = a text of one plan
  // `rank` counts the plans that have been written, from 1.
  Exported (*write)(const Problem& problem, const RankedPlan& ranked, int rank);
  // Pins what the program has no words for and the user left free, so that a search for plans to
  // write does not find others; nullptr = nothing.
  void (*narrow)(Pins& pins) = nullptr;
  // Of programs that read one file for each plan; nullptr = plans are rows, or one text.
  std::string (*file_name)(const Problem& problem, const RankedPlan& ranked) = nullptr;
};

// The one table of exporters. To add one: write a file, add a row.
std::span<const Exporter> exporters();
const Exporter* exporter_named(std::string_view name);  // nullptr = there is none
std::vector<std::string> exporter_names();

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
