#include "cost/aceso_formula.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "io/format/json_reader.h"
#include "io/profile/import_aceso.h"
#include "io/profile/profile_path.h"
#include "source_tree.h"

namespace plait {
namespace {

const std::string kFolder = source_dir() + "/../shared/data/aceso/";
constexpr double kMb = 0x1p20;

std::vector<int> unpacked(const JsonValue& runs) {
  std::vector<int> out;
  for (const JsonValue& run : runs.items()) {
    const std::vector<JsonValue> pair = run.items();
    out.insert(out.end(), pair[1].integer(0, 1'000'000), pair[0].integer(0, 1'000'000));
  }
  return out;
}

std::vector<AcesoStage> stages_of(const JsonValue& vector) {
  std::vector<AcesoStage> out;
  const auto counts = vector.at("num_ops").items();
  const auto devices = vector.at("gpus").items();
  const auto list = [&](const char* key, std::size_t s) {
    return unpacked(vector.at(key).items()[s]);
  };
  int begin = 0;
  for (std::size_t s = 0; s < counts.size(); ++s) {
    AcesoStage stage;
    const int end = begin + counts[s].integer(1, 1'000'000);
    stage.ops = {begin, end};
    stage.devices = devices[s].integer(1, 1000);
    const auto tensor = list("tp", s), data = list("dp", s), algorithm = list("algo", s),
               recompute = list("recompute", s);
    for (std::size_t i = 0; i < tensor.size(); ++i)
      stage.choices.push_back({tensor[i], data[i], algorithm[i], recompute[i] != 0});
    begin = end;
    out.push_back(std::move(stage));
  }
  return out;
}

// Compares with the breakdown that Aceso's own program printed; counts what is off by 0.1 %.
struct Comparison {
  int compared = 0;
  int off = 0;
  void add(double own, double wanted) {
    ++compared;
    if (std::abs(own - wanted) > 1e-3 * std::abs(wanted) + 1e-9) ++off;
  }
};

void compare(const AcesoCost& cost, const JsonValue& vector, Comparison& out) {
  const auto stages = vector.at("stages").items();
  const auto times = vector.at("time_list_ms").items();
  const auto memory = vector.at("memory_list_MB").items();
  ASSERT_EQ(stages.size(), cost.stages.size());
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const AcesoStageCost& own = cost.stages[s];
    out.add(1e6 * own.forward.value, stages[s].at("fwd_us").number());
    out.add(1e6 * own.backward.value, stages[s].at("bwd_us").number());
    out.add(1e6 * own.recomputed.value, stages[s].at("recomp_us").number());
    out.add(1e6 * own.in.value, stages[s].at("in_comm_us").number());
    out.add(1e6 * own.out.value, stages[s].at("out_comm_us").number());
    out.add(1e6 * own.reshard.value, stages[s].at("reshard_us").number());
    const JsonValue kinds = stages[s].at("mem");
    out.add(own.weights.value / kMb, kinds.at("weights_main").number());
    out.add(own.gradients.value / kMb, kinds.at("grads").number());
    out.add(own.optimizer.value / kMb, kinds.at("optimizer").number());
    out.add(own.activations.value / kMb, kinds.at("activations").number());
    out.add(own.peak.value / kMb, kinds.at("peak").number());
    out.add(own.reserved.value / kMb, kinds.at("reserved").number());
    out.add(1e3 * cost.times[s].value, times[s].number());
    out.add(own.memory().value / kMb, memory[s].number());
  }
}

// "small-gpt-1_3B" was costed on the database of the small experiment; "scale-8" has 8 layers.
struct VectorFile {
  std::string database;
  std::string table;
  std::string family;
};

VectorFile file_of(const std::string& name) {
  const bool small = name.starts_with("small");
  if (name.starts_with("scale")) return {"profiled-time-eurosys", "gpt_scale-layer", "gpt"};
  std::string table = name.substr(name.find('-') + 1);
  table[table.find('-')] = '_';
  return {small ? "profiled-time-miniset" : "profiled-time-eurosys", table, aceso_family(table)};
}

TEST(AcesoFormula, AgreesWithEveryBreakdownOfAcesosProgram) {
  if (!std::filesystem::exists(kFolder + "vectors"))
    GTEST_SKIP() << "no breakdowns at " << kFolder << "vectors";
  for (const auto& entry : std::filesystem::directory_iterator(kFolder + "vectors")) {
    const JsonValue root = read_json_file(entry.path().string());
    const VectorFile file = file_of(entry.path().stem().string());
    const AcesoTable table =
        read_aceso_tables(find_profile_files(kFolder + file.database), file.table);
    const int count = root.at("num_ops").integer(1, 1'000'000);
    std::vector<int> layers{file.family == "t5" ? (count - 5) / 34 : (count - 3) / 13};
    if (file.family == "resnet") layers = {3, 4, count > 200 ? 23 : 6, 3};
    const std::vector<std::string> ops = aceso_op_list(file.family, layers);
    ASSERT_EQ(static_cast<int>(ops.size()), count) << entry.path();
    const AcesoFormula formula(table, ops, root.at("num_gpus_per_node").integer(1, 1000));
    Comparison comparison;
    for (const JsonValue& vector : root.at("vectors").items()) {
      const auto stages = stages_of(vector);
      const auto cost = formula.cost(stages, vector.at("global_bs").integer(1, 1'000'000),
                                     vector.at("micro_bs").integer(1, 1'000'000));
      ASSERT_TRUE(cost.has_value());
      compare(*cost, vector, comparison);
    }
    fmt::print("{}: {} numbers, {} off by more than 0.1 %\n", entry.path().stem().string(),
               comparison.compared, comparison.off);
    EXPECT_EQ(comparison.off, 0) << entry.path();
  }
}

}  // namespace
}  // namespace plait
