#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/hlo/module.h"

namespace plait::graph {

// The integers of "{0,2}", in order; nothing for an attribute that is not there.
std::vector<std::int64_t> integers(const Instruction& it, std::string_view key);
std::int64_t integer_or(const Instruction& it, std::string_view key, std::int64_t otherwise);
// All integers of a text, whatever stands between them: "3x3" gives 3 and 3, "1_1x2_2" four.
std::vector<std::int64_t> integers_in(std::string_view text);

// slice={[0:16], [0:8:2]}
struct SliceDim {
  std::int64_t start = 0;
  std::int64_t limit = 0;
  std::int64_t stride = 1;
};
std::vector<SliceDim> slice_dims(const Instruction& it);

// One key of window={size=3x3 stride=2x2}; `otherwise` for each of `rank` dimensions where absent.
std::vector<std::int64_t> window_field(const Instruction& it, std::string_view key, int rank,
                                       std::int64_t otherwise);

// dim_labels=bf01_oi01->bf01: which dimension of each tensor is what.
struct ConvolutionDims {
  int lhs_batch = 0;
  int lhs_feature = 0;
  std::vector<int> lhs_spatial;
  int rhs_input = 0;
  int rhs_output = 0;
  std::vector<int> rhs_spatial;
  int out_batch = 0;
  int out_feature = 0;
  std::vector<int> out_spatial;
  bool valid = false;
};
ConvolutionDims convolution_dims(const Instruction& it);

// The text between the quotes of frontend_attributes={key="text"}; "" where it is absent.
std::string frontend_attribute(const Instruction& it, std::string_view key);
// op_name of metadata={...}.
std::string op_name(const Instruction& it);
// custom_call_target without its quotes.
std::string custom_call_target(const Instruction& it);

// input_output_alias of the module: which output leaf reuses which parameter leaf.
struct Alias {
  std::vector<std::int64_t> output;  // path in the result's tuple
  std::int64_t parameter = 0;
  std::vector<std::int64_t> parameter_path;
};
std::vector<Alias> aliases(const Module& module);

}  // namespace plait::graph
