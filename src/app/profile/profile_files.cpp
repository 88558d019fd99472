#include "app/profile/profile_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/request/request_error.h"
#include "io/format/json_writer.h"
#include "io/model/load_model.h"
#include "io/profile/profile_json.h"
#include "report/quantities.h"

namespace plait {

MergeProfilesAnswer answer(const MergeProfilesRequest& request) {
  if (request.paths.size() < 2)
    throw InputError("plait profile merge", "needs two or more profile files");
  MergeProfilesAnswer out;
  for (const std::string& path : request.paths)
    out.profile = runtime::merged(std::move(out.profile), read_profile_file(path));
  return out;
}

std::string to_json(const MergeProfilesAnswer& answer) {
  return profile_file_to_json(answer.profile);
}

std::string as_text(const MergeProfilesAnswer& answer) {
  const Profile& all = answer.profile;
  return fmt::format("{} units, {} ops, {} curves", all.compute.size(), all.ops.size(),
                     all.collectives.size());
}

DiffProfilesAnswer answer(const DiffProfilesRequest& request) {
  if (request.paths.size() != 2) throw InputError("plait profile diff", "needs two profile files");
  DiffProfilesAnswer out{request.paths,
                         runtime::compare_profiles(read_profile_file(request.paths[0]),
                                                   read_profile_file(request.paths[1]))};
  std::ranges::stable_sort(out.comparison.both, std::greater<>(),
                           [](const auto& d) { return std::abs(d.relative()); });
  return out;
}

std::string to_json(const DiffProfilesAnswer& answer) {
  const runtime::ProfileComparison& comparison = answer.comparison;
  std::vector<std::string> items;
  for (const auto& d : comparison.both)
    items.push_back(JsonObject()
                        .text("what", d.what)
                        .number("a", d.a)
                        .number("b", d.b)
                        .number("relative", d.relative())
                        .str());
  return lay_out_json(JsonObject()
                          .number("median", comparison.median())
                          .number("largest", comparison.largest())
                          .number("only_a", comparison.only_a)
                          .number("only_b", comparison.only_b)
                          .json("both", json_list(items))
                          .str());
}

std::string as_text(const DiffProfilesAnswer& answer, const Style& style) {
  constexpr std::size_t kShown = 20;
  const runtime::ProfileComparison& comparison = answer.comparison;
  Table table({{"quantity", Align::left}, {answer.paths[0]}, {answer.paths[1]}, {"change %"}});
  for (std::size_t i = 0; i < std::min(kShown, comparison.both.size()); ++i) {
    const auto& d = comparison.both[i];
    table.row({d.what, fmt::format("{:.4g}", d.a), fmt::format("{:.4g}", d.b),
               fmt::format("{:+.1f}", 100 * d.relative())});
  }
  return table.str(style) +
         fmt::format(
             "{} quantities in both: median change {:.2f} %, largest {:.1f} %; {} points "
             "only in the first, {} only in the second\n",
             comparison.both.size(), 100 * comparison.median(), 100 * comparison.largest(),
             comparison.only_a, comparison.only_b);
}

const std::vector<std::string_view>& profile_forms() {
  static const std::vector<std::string_view> kForms{"native", "metis", "aceso"};
  return kForms;
}

ConvertProfileAnswer converted(const Profile& profile, const Model& model, const Job& job,
                               const std::string& format) {
  refuse_unknown("format", format, profile_forms());
  return {format == "metis" ? metis_files(profile, model, job) : aceso_files(profile, model, job),
          format};
}

ConvertProfileAnswer answer(const ConvertProfileRequest& request) {
  return converted(read_profile_file(request.path),
                   load_model(request.model, request.sequence).model, request.job, request.format);
}

std::string as_text(const ConvertProfileAnswer& answer) {
  return fmt::format("{} as {} names them", counted(static_cast<int>(answer.files.size()), "file"),
                     answer.format);
}

}  // namespace plait
