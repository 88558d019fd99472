#include "fuzz/readers.h"

#include <algorithm>
#include <filesystem>

#include "fuzz/configuration_readers.h"
#include "fuzz/oracles.h"
#include "fuzz/run_readers.h"
#include "graph/analysis.h"
#include "graph/hlo/read_text.h"
#include "graph/hlo/write_text.h"
#include "io/cluster/catalogue.h"
#include "io/cluster/cluster_json.h"
#include "io/cluster/cluster_shorthand.h"
#include "io/cluster/hostfile.h"
#include "io/cluster/load_cluster.h"
#include "io/format/csv.h"
#include "io/format/json_writer.h"
#include "io/format/npy.h"
#include "io/format/sample_npy.h"
#include "io/graph/instance_json.h"
#include "io/model/huggingface/huggingface.h"
#include "io/model/load_model.h"
#include "io/model/megatron_flags.h"
#include "io/model/megatron_launch.h"
#include "io/model/megatron_script.h"
#include "io/model/plait_model.h"
#include "io/plan/plan_json.h"
#include "io/plan/problem_json.h"
#include "io/profile/import_aceso.h"
#include "io/profile/import_profile.h"
#include "io/profile/profile_json.h"
#include "io/profile/profile_path.h"
#include "io/shell/script_tokens.h"
#include "io/shell/shell_script.h"
#include "model/transformer.h"
#include "plan/describe.h"
#include "validation/published_runs.h"

namespace plait::fuzz {
namespace {

// ---- plain formats

void read_json(const std::string& bytes) {
  parse_json("file", bytes);
  const std::string laid_out = lay_out_json(bytes);
  promise(again([&] { return lay_out_json(laid_out); }) == laid_out, "JSON laid out twice differs");
}

void read_csv(const std::string& bytes) {
  const CsvTable table = parse_csv("file", bytes);
  std::string written = csv_line(table.header);
  for (const CsvTable::Row& row : table.rows) written += csv_line(row.cells);
  const CsvTable back = again([&] { return parse_csv("file", written); });
  promise(back.header == table.header && back.rows.size() == table.rows.size(),
          "a table is another one when it is written and read");
}

void read_npy(const std::string& bytes) {
  const std::vector<double> values = parse_npy("file", bytes);
  const auto back = again([&] { return parse_npy("file", samples::npy(values)); });
  promise(std::ranges::equal(values, back,
                             [](double a, double b) { return a == b || (a != a && b != b); }),
          "an array is another one when it is written and read");
}

// ---- models

// One device that holds everything: what is left to go wrong is the model. Programs whose kernels
// have tables of their own (src/cost/op) each price it.
void check_model(const Model& model) {
  constexpr Bytes kEnough(1e30);
  Problem problem;
  problem.model = model;
  problem.cluster = read_cluster_shorthand("A100-80GB:1", builtin_catalogue()).cluster;
  problem.cluster.device_types[0].memory = kEnough;
  problem.job.global_batch = 1;
  Plan plan;
  plan.stages.push_back({{{.units = {0, model.unit_count()}}}, {DeviceId{0}}, {}});
  for (const char* name : {"megatron", "eager", "plait"}) {
    problem.job.framework = find_framework(builtin_catalogue(), name, "framework");
    check_price(problem, plan);
  }
}

void check_saved(const Model& model) {
  const std::string written = dump_model(model);
  promise(again([&] { return restore_model(parse_json("model", written)); }) == model,
          "a model is another one when it is saved and read");
  check_model(model);
}

void read_any_model(const std::string& bytes) {
  check_saved(read_model(parse_json("model.json", bytes), std::nullopt).model);
}

void read_launch_script(const std::string& bytes) {
  try {
    commands_of(bytes);
  } catch (const ScriptFault&) {
  }
  const std::string line = read_megatron_script("launch.sh", bytes).text;
  if (!has_megatron_flags(line)) return;
  read_megatron_launch("launch.sh", line);
  check_saved(build_transformer(read_megatron_flags("launch.sh", line, std::nullopt).config));
}

void read_config(const std::string& bytes) {
  check_saved(
      build_transformer(read_huggingface(parse_json("config.json", bytes), std::nullopt).config));
}

// ---- clusters

// As a native file, nodes that are not numbered from 0 stand one by one, so that a file has no room
// for more than these; plan files do.
constexpr std::size_t kMostListed = 50'000;

void check_cluster(const Cluster& cluster) {
  if (cluster.nodes.size() <= kMostListed)
    promise(again([&] {
              return read_cluster_json(parse_json("cluster", cluster_to_json(cluster)),
                                       builtin_catalogue());
            }).cluster == cluster,
            "a cluster is another one when it is written and read");
  promise(again([&] { return restore_cluster(parse_json("cluster", dump_cluster(cluster))); }) ==
              cluster,
          "a cluster is another one when it is saved and read");
}

void read_native_cluster(const std::string& bytes) {
  check_cluster(read_cluster_json(parse_json("cluster.json", bytes), builtin_catalogue()).cluster);
}

void read_hosts(const std::string& bytes) {
  ClusterOptions options;
  options.device = "V100-16GB";
  check_cluster(read_hostfile("hostfile", bytes, options).cluster);
}

void read_short_cluster(const std::string& bytes) {
  check_cluster(read_cluster_shorthand(bytes, builtin_catalogue()).cluster);
}

void read_own_catalogue(const std::string& bytes) {
  load_catalogue({file_of("catalogue.json", bytes)});
}

// ---- profiles

void read_native_profile(const std::string& bytes) {
  const Profile profile = parse_profile("profile.json", bytes);
  const std::string written = profile_file_to_json(profile);
  promise(again([&] { return parse_profile("profile.json", written); }) == profile,
          "a profile is another one when it is written and read");
}

Model small_gpt() {
  TransformerConfig config;
  config.name = "gpt2";
  config.layers = 2;
  config.hidden = 256;
  config.heads = 4;
  config.vocabulary = 1000;
  config.sequence = 128;
  return build_transformer(config);
}

// What an importer takes, plait can write and read.
void import_file(const char* from, const char* name, const std::string& bytes) {
  static const Model model = small_gpt();
  const Profile profile = import_profile(from, file_of(name, bytes), model).profile;
  const std::string written = profile_file_to_json(profile);
  again([&] { return parse_profile("profile.json", written); });
}

void import_metis(const std::string& bytes) {
  import_file("metis", "DeviceType.T4_tp1_bs1.json", bytes);
}
void import_aceso(const std::string& bytes) {
  import_file("aceso", "gpt_1_3B_mbs1_tp1_algo0.csv", bytes);
}
void import_amp(const std::string& bytes) { import_file("amp", "gpt2_G4_1.npy", bytes); }
void import_fasop(const std::string& bytes) { import_file("fasop", "gpt2XL_A100_1.npy", bytes); }
// A curve of a link or a collective is read by the name of its file.
void import_curve(const char* name, const std::string& bytes) {
  const std::string path = file_of(name, bytes);
  Profile profile;
  try {
    read_aceso_links(find_profile_files(path), "T4", profile);
  } catch (const InputError&) {
    std::filesystem::remove(path);  // the next one is read with all that lies beside it
    throw;
  }
  std::filesystem::remove(path);
  const std::string written = profile_file_to_json(profile);
  again([&] { return parse_profile("profile.json", written); });
}
void import_aceso_sends(const std::string& bytes) { import_curve("p2p_intra_node.csv", bytes); }
void import_aceso_gathers(const std::string& bytes) {
  import_curve("prim_gpt_1_3B_all_gather_2gpus.csv", bytes);
}
void import_nccl(const std::string& bytes) {
  import_file("nccl-tests", "all_reduce_perf.txt", bytes);
}

// ---- plans and runs

void read_saved_plan(const std::string& bytes) {
  const PlanFile file = plan_file_from_json(parse_json("plan.json", bytes));
  const std::string written = plan_file_to_json(file.problem, file.plan, {}, file.made_by);
  const PlanFile back =
      again([&] { return plan_file_from_json(parse_json("plan.json", written)); });
  promise(back.plan == file.plan && back.problem == file.problem && back.made_by == file.made_by,
          "a plan file is another one when it is written and read");
  check_price(file.problem, file.plan);
}

void read_description(const std::string& bytes) {
  // Plans that check_plan() refuses may have no description that reads back.
  describe(parse_description("plan", bytes));
}

void read_runs(const std::string& bytes) { read_published_runs("runs.csv", bytes); }

// ---- programs

void read_program(const std::string& bytes) {
  const graph::Module module = graph::read_hlo(bytes, "step.hlo");
  const std::string written = graph::write_hlo(module);
  const graph::Module back = again([&] { return graph::read_hlo(written, "step.hlo"); });
  promise(graph::write_hlo(back) == written,
          "a program is another one when it is written and read");
}

void analyse_program(const std::string& bytes) { graph::analyze(bytes, "step.hlo"); }

void read_contest_instance(const std::string& bytes) {
  read_instance(file_of("instance.json", bytes));
}

void read_packed_instance(const std::string& bytes) {
  read_instance(file_of("instance.json.gz", bytes));
}

}  // namespace

std::span<const Reader> readers() {
  static constexpr Reader kReaders[] = {
      {"json", Shape::json, read_json},
      {"csv", Shape::csv, read_csv},
      {"npy", Shape::bytes, read_npy},
      {"model", Shape::json, read_any_model},
      {"huggingface", Shape::json, read_config},
      {"megatron", Shape::text, read_launch_script},
      {"layout", Shape::text, read_layout},
      {"deepspeed", Shape::json, read_deepspeed},
      {"accelerate", Shape::text, read_accelerate},
      {"launch", Shape::text, read_launch},
      {"cluster", Shape::json, read_native_cluster},
      {"hostfile", Shape::text, read_hosts},
      {"shorthand", Shape::text, read_short_cluster},
      {"catalogue", Shape::json, read_own_catalogue},
      {"profile", Shape::json, read_native_profile},
      {"metis", Shape::json, import_metis},
      {"aceso", Shape::csv, import_aceso},
      {"aceso_gathers", Shape::csv, import_aceso_gathers},
      {"aceso_sends", Shape::csv, import_aceso_sends},
      {"amp", Shape::bytes, import_amp},
      {"fasop", Shape::bytes, import_fasop},
      {"nccl", Shape::text, import_nccl},
      {"plan", Shape::json, read_saved_plan},
      {"description", Shape::text, read_description},
      {"metis_command", Shape::text, read_metis_command},
      {"runs", Shape::csv, read_runs},
      {"trials", Shape::csv, read_trials},
      {"log", Shape::text, read_log},
      {"rank_request", Shape::json, read_rank_request},
      {"tokens", Shape::json, read_tokens},
      {"checkpoint", Shape::json, read_checkpoint},
      {"points", Shape::json, read_points},
      {"graph_profile", Shape::json, read_times_of_graph},
      {"hlo", Shape::text, read_program},
      {"analysis", Shape::text, analyse_program},
      {"instance", Shape::json, read_contest_instance},
      {"packed_instance", Shape::bytes, read_packed_instance},
  };
  return kReaders;
}

const Reader* reader_named(std::string_view name) {
  const auto found = std::ranges::find(readers(), name, &Reader::name);
  return found == readers().end() ? nullptr : &*found;
}

bool accepts(const Reader& reader, const std::string& bytes) {
  try {
    reader.read(bytes);
  } catch (const InputError&) {
    return false;
  }
  return true;
}

}  // namespace plait::fuzz
