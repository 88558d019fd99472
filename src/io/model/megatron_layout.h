#pragma once

#include <string>
#include <vector>

namespace plait {

// One position of a pipeline in Megatron-LM's --pipeline-model-parallel-layout.
struct LayoutStage {
  int layers = 0;
  bool embedding = false;
  bool loss = false;
  friend bool operator==(const LayoutStage&, const LayoutStage&) = default;
};

// "Et*5|t*6|t*7|t*6L" and "Et*3|(tt|)*29L": E is the embedding, t a layer, L the loss with the
// output layer, | ends a stage, x*n repeats a letter or what stands in parentheses, commas and
// blanks part nothing. InputError(where, ..) for what Megatron-LM does not read either, and for
// layers that predict further tokens (m), which plait has no words for.
std::vector<LayoutStage> parse_layout(const std::string& where, const std::string& text);

// The same layout; stages have at least one thing.
std::string layout_text(const std::vector<LayoutStage>& stages);

}  // namespace plait
