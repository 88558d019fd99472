#pragma once

#include <string>

#include "app/graph/source.h"
#include "report/table.h"

namespace plait {

// Which blocks and segments a program has.
struct GraphAnalyzeRequest {
  GraphSource source;  // the program alone counts
};
struct GraphAnalyzeAnswer {
  graph::Analysis analysis;
};

GraphAnalyzeAnswer answer(const GraphAnalyzeRequest& request, const Session& session);
std::string to_json(const GraphAnalyzeAnswer& answer);
std::string as_text(const GraphAnalyzeAnswer& answer, const Style& style);

}  // namespace plait
