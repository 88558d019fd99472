#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "io/format/checked_number.h"
#include "io/format/csv.h"
#include "io/format/text_file.h"
#include "io/format/unit_factors.h"
#include "io/profile/import_aceso.h"

namespace plait {
namespace {

constexpr Seconds kDidNotFit(10);     // 1e7 in every measured column
constexpr double kNotMeasured = 1e5;  // seconds: collectives over the size limit have 1e6
constexpr int kMostDegree = 1'000'000;

struct OpFile {
  std::string model;
  AcesoPoint point;
};

// Takes `word` and the number after it off the end of `text`.
bool take_last_number(std::string_view& text, std::string_view word, int& into) {
  const std::size_t at = text.rfind(word);
  if (at == text.npos) return false;
  const std::string_view digits = text.substr(at + word.size());
  const auto [stop, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), into);
  if (fault != std::errc() || stop != digits.data() + digits.size() || into < 0 ||
      into > kMostDegree)
    return false;
  text = text.substr(0, at);
  return true;
}

// "gpt_1_3B_mbs1_tp2_algo0.csv"
std::optional<OpFile> parse_op_file(std::string_view name) {
  if (!name.ends_with(".csv")) return std::nullopt;
  name.remove_suffix(4);
  OpFile file;
  if (!take_last_number(name, "_algo", file.point.algorithm) ||
      !take_last_number(name, "_tp", file.point.tensor) ||
      !take_last_number(name, "_mbs", file.point.micro_batch))
    return std::nullopt;
  if (name.empty() || file.point.tensor < 1 || file.point.micro_batch < 1) return std::nullopt;
  file.model = name;
  return file;
}

// In plain units, which must be in the range of quantities as the column itself.
double number(const CsvTable& table, const CsvTable::Row& row, std::string_view column,
              double unit) {
  const std::string_view text = table.cell(row, column);
  const std::optional<double> value = checked_number(text);
  const std::optional<double> plain = value ? in_range(*value * unit) : std::nullopt;
  if (!plain || *plain < 0)
    throw InputError(
        table.where(row),
        fmt::format("{} must be 0 or a number from {} to {}, is '{}'", column, kSmallestQuantity,
                    kLargestQuantity, std::string(text.substr(0, 40))));
  return *plain;
}

// Where an op did not fit, by its name; nothing where it did somewhere.
using Unfit = std::map<std::string, std::optional<std::string>>;

std::map<std::string, AcesoOp> read_op_file(const std::string& path, Unfit& unfit) {
  const CsvTable table = parse_csv(path, read_text_file(path));
  for (const char* column :
       {"op_name", "forward-compute", "backward-compute", "input_size", "output_size", "weights",
        "activations", "fwd_reserved", "bwd_reserved"})
    if (!table.has(column))
      throw InputError(path, fmt::format("has no column '{}'; is it a table of ops?", column));
  std::map<std::string, AcesoOp> ops;
  for (const CsvTable::Row& row : table.rows) {
    const auto time = [&](const char* name) {
      return Seconds(number(table, row, name, kMicrosecond));
    };
    const auto size = [&](const char* name) { return Bytes(number(table, row, name, kMebibyte)); };
    AcesoOp op{.forward = time("forward-compute"),
               .backward = time("backward-compute"),
               .input = size("input_size"),
               .output = size("output_size"),
               .weights = size("weights"),
               .activations = size("activations"),
               .forward_reserved = size("fwd_reserved"),
               .backward_reserved = size("bwd_reserved")};
    op.did_not_fit = std::max(op.forward, op.backward) >= kDidNotFit;
    const std::string name(table.cell(row, "op_name"));
    if (!ops.emplace(name, op).second)
      throw InputError(table.where(row), "the same op is there twice");
    auto& where = unfit.try_emplace(name, table.where(row)).first->second;
    if (!op.did_not_fit) where.reset();
  }
  if (ops.empty()) throw InputError(path, "has no op");
  return ops;
}

// Sizes of all-gathers and all-to-alls are those of one member's part; the profile has the whole
// tensor of an all-gather.
struct Collective {
  std::string_view word;
  const char* name;
  bool size_is_part;
};
constexpr Collective kCollectives[] = {{"_all_gather", "all_gather", true},
                                       {"_all_reduce", "all_reduce", false},
                                       {"_reduce_scatter", "reduce_scatter", false},
                                       {"_all_to_all", "all_to_all", false}};

using Curves = std::map<CollectiveKey, std::map<double, std::vector<double>>>;  // seconds by bytes

// "prim_gpt_1_3B_all_gather_2gpus.csv"
void read_collective(const ProfilePath& files, std::string_view name,
                     const std::string& device_type, Curves& curves) {
  const std::string path = files.path(std::string(name));
  if (!name.starts_with("prim_") || !name.ends_with("gpus.csv")) return;
  name.remove_suffix(8);
  int members = 0;
  if (!take_last_number(name, "_", members) || members < 2) return;
  for (const Collective& collective : kCollectives) {
    if (!name.ends_with(collective.word)) continue;
    const CsvTable table = parse_csv(path, read_text_file(path));
    for (const char* column : {"data_size(MB)", "time(ms)"})
      if (!table.has(column)) throw InputError(path, fmt::format("has no column '{}'", column));
    auto& curve = curves[{.collective = collective.name,
                          .device_type = device_type,
                          .nodes = 1,
                          .devices_per_node = members}];
    for (const CsvTable::Row& row : table.rows) {
      const double parts = collective.size_is_part ? members : 1;
      const double size = number(table, row, "data_size(MB)", kMebibyte * parts);
      const double time = number(table, row, "time(ms)", kMillisecond);
      if (time < kNotMeasured) curve[size].push_back(time);
    }
  }
}

// Two lines: sizes in MB, and GB/s of a message of each.
constexpr double kLeastSent = 1e-6;
constexpr double kMostSent = 1e9;
constexpr double kSlowest = 1e-9;
constexpr double kFastest = 1e9;
void read_sends(const std::string& path, CollectiveKey key, Profile& profile) {
  const CsvTable table = parse_csv(path, read_text_file(path));
  if (table.rows.size() != 1) throw InputError(path, "must have two lines: sizes in MB, and GB/s");
  std::vector<CollectivePoint> points;
  for (const std::string& size : table.header) {
    const double mebibytes = checked_number(size).value_or(-1);
    const double rate = number(table, table.rows[0], size, 1);
    if (!(mebibytes >= kLeastSent && mebibytes <= kMostSent && rate >= kSlowest &&
          rate <= kFastest))
      throw InputError(
          path, fmt::format("must have sizes from {} to {} MB and rates from {} to {} "
                            "GB/s, has '{}' and {}",
                            kLeastSent, kMostSent, kSlowest, kFastest, size.substr(0, 40), rate));
    const Bytes bytes(mebibytes * kMebibyte);
    if (!points.empty() && bytes <= points.back().size) throw InputError(path, "sizes must ascend");
    points.push_back({.size = bytes, .time = bytes / BytesPerSecond(rate * 1e9)});
  }
  profile.collectives.emplace(std::move(key), std::move(points));
}

}  // namespace

std::set<std::string> aceso_tables_in(const ProfilePath& files) {
  std::set<std::string> models;
  for (const std::string& name : files.names)
    if (const auto file = parse_op_file(name)) models.insert(file->model);
  return models;
}

AcesoTable read_aceso_ops(const ProfilePath& files, const std::string& wanted) {
  const std::set<std::string> models = aceso_tables_in(files);
  if (models.empty())
    throw InputError(files.directory, "has no file named like gpt_1_3B_mbs1_tp1_algo0.csv");
  if (!wanted.empty() && !models.contains(wanted))
    throw InputError(files.directory, fmt::format("has no ops of {}; it has those of {}", wanted,
                                                  fmt::join(models, ", ")));
  if (wanted.empty() && models.size() > 1)
    throw InputError(files.directory,
                     fmt::format("has ops of {}; name one: {}/{}_mbs", fmt::join(models, ", "),
                                 files.directory, *models.begin()));
  AcesoTable table;
  table.name = wanted.empty() ? *models.begin() : wanted;
  Unfit unfit;
  for (const std::string& name : files.names) {
    const auto file = parse_op_file(name);
    if (file && file->model == table.name)
      table.points.emplace(file->point, read_op_file(files.path(name), unfit));
  }
  for (const auto& [op, where] : unfit)
    if (where) throw InputError(*where, "did not fit into memory wherever it was measured");
  return table;
}

void read_aceso_links(const ProfilePath& files, const std::string& device_type, Profile& profile) {
  const ProfilePath all = find_profile_files(files.directory.empty() ? "." : files.directory);
  Curves curves;
  for (const std::string& name : all.names) {
    read_collective(all, name, device_type, curves);
    if (name == "p2p_intra_node.csv" || name == "p2p_inter_node.csv")
      read_sends(all.path(name),
                 {.collective = "send",
                  .device_type = device_type,
                  .nodes = name == "p2p_intra_node.csv" ? 1 : 2,
                  .devices_per_node = 1},
                 profile);
  }
  for (const auto& [key, curve] : curves) {
    std::vector<CollectivePoint> points;
    for (const auto& [size, times] : curve) {
      double sum = 0;
      for (const double time : times) sum += time;
      points.push_back(
          {.size = Bytes(size), .time = Seconds(sum / static_cast<double>(times.size()))});
    }
    if (!points.empty()) profile.collectives.emplace(key, std::move(points));
  }
}

namespace {

std::vector<double> read_rates(const std::string& path) {
  Profile profile;
  read_sends(path, {.collective = "send"}, profile);  // says what is wrong with it
  const CsvTable table = parse_csv(path, read_text_file(path));
  std::vector<double> rates;
  for (const std::string& size : table.header)
    rates.push_back(number(table, table.rows[0], size, 1));
  return rates;
}

}  // namespace

AcesoTable read_aceso_tables(const ProfilePath& files, const std::string& wanted) {
  AcesoTable table = read_aceso_ops(files, wanted);
  const ProfilePath all = find_profile_files(files.directory.empty() ? "." : files.directory);
  for (const std::string& name : all.names) {
    if (name == "p2p_intra_node.csv") table.intra_node = read_rates(all.path(name));
    if (name == "p2p_inter_node.csv") table.inter_node = read_rates(all.path(name));
    for (const Collective& collective : kCollectives) {
      std::string_view rest = name;
      const std::string prefix = fmt::format("prim_{}{}_", table.name, collective.word);
      int members = 0;
      if (!rest.starts_with(prefix) || !rest.ends_with("gpus.csv")) continue;
      rest.remove_suffix(8);
      if (!take_last_number(rest, "_", members) || members < 2) continue;
      const CsvTable csv = parse_csv(all.path(name), read_text_file(all.path(name)));
      for (const char* column : {"data_size(MB)", "time(ms)"})
        if (!csv.has(column))
          throw InputError(all.path(name), fmt::format("has no column '{}'", column));
      auto& times = table.collectives[{collective.name, members}];
      for (const CsvTable::Row& row : csv.rows)
        times[std::llrint(std::min(kMostSent, number(csv, row, "data_size(MB)", 1)))] =
            Seconds(number(csv, row, "time(ms)", kMillisecond));
    }
  }
  return table;
}

}  // namespace plait
