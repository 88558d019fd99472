#include <gtest/gtest.h>

#include "io/format/json_reader.h"
#include "io/model/huggingface/huggingface.h"
#include "model/transformer.h"
#include "source_tree.h"

namespace plait {
namespace {

// The rows were made by scripts/transformers_counts.py with `transformers` itself.
TEST(TransformersCounts, ParametersAreEqualToTheLastOne) {
  const JsonValue file = read_json_file(source_dir() + "/tests/models/transformers_counts.json");
  int rows = 0;
  for (const JsonValue& row : file.at("rows").items()) {
    const TransformerReading reading = read_huggingface(row.at("config"), std::nullopt);
    EXPECT_EQ(build_transformer(reading.config).parameters(), row.at("parameters").number())
        << row.at("config").where() << " " << row.at("config").at("model_type").text() << " "
        << row.at("config").at("architectures").items()[0].text();
    for (const std::string& warning : reading.warnings)
      EXPECT_EQ(warning.find("known"), std::string::npos) << warning;
    ++rows;
  }
  EXPECT_GE(rows, 170);
}

}  // namespace
}  // namespace plait
