// Functions of what is known by name, of measurements, and of profiles.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "app/known/lists.h"
#include "app/known/model.h"
#include "app/measured/import.h"
#include "app/measured/validate.h"
#include "app/profile/profile_files.h"
#include "cli/flags/validate_flags.h"
#include "export/exporter.h"
#include "io/format/json_writer.h"
#include "plan/target.h"
#include "python/answered.h"

namespace plait {
namespace {

namespace nb = nanobind;

std::vector<std::string> strings(const std::vector<std::string_view>& names) {
  return {names.begin(), names.end()};
}

Answered validate(const Keywords& keywords) {
  ValidateRequest request;
  request.threads = std::clamp(usual_threads(), 1, 16);
  set_keywords({validate_flags(request)}, keywords);
  auto found =
      std::make_shared<const ValidateAnswer>(run_to_the_end([&] { return answer(request); }));
  return answered(found);
}

std::string describe_model(const std::string& model, std::optional<int> sequence) {
  return to_json(answer(ModelRequest{model, sequence}));
}

// What `import_profile` is told, in the words of `plait import`.
std::vector<FlagGroup> import_keywords(ImportRequest& request) {
  return {{"",
           {{.name = "--form",
             .value = "S",
             .help = "whose files they are; by default their names tell",
             .set = into_one_of(request.from, import_forms())},
            {.name = "--model",
             .value = "M",
             .help = "the model that was measured, as plan() takes it; not for nccl-tests",
             .set = into_text(request.model)},
            {.name = "--seq",
             .value = "N",
             .help = "tokens in a sample; the model's own by default",
             .set = into_integer(request.sequence, 1, kMaxSequence)}}}};
}

std::string import_profile(const std::string& path, const Keywords& keywords) {
  ImportRequest request;
  request.path = path;
  set_keywords(import_keywords(request), keywords);
  return to_json(run_to_the_end([&] { return answer(request, Session{}); }));
}

}  // namespace

void add_known_calls(nb::module_& module) {
  module.def("models", [] { return to_json(known_models()); });
  module.def("devices", [](const std::vector<std::string>& catalogue) {
    return to_json(load_catalogue(catalogue).devices);
  });
  module.def("instances", [](const std::vector<std::string>& catalogue) {
    return to_json(load_catalogue(catalogue).instances);
  });
  module.def("frameworks", [](const std::vector<std::string>& catalogue) {
    return strings(framework_names(load_catalogue(catalogue)));
  });
  module.def("planners", [] { return strings(planner_names()); });
  module.def("programs", [] { return strings(target_names()); });
  module.def("describe_model", describe_model, nb::arg("model"), nb::arg("sequence").none());
  module.def("validate", validate);
  module.def("validate_keywords", [] {
    ValidateRequest request;
    return keyword_entries({validate_flags(request)});
  });
  module.def("import_profile", import_profile);
  module.def("import_keywords", [] {
    ImportRequest request;
    return keyword_entries(import_keywords(request));
  });
  module.def("merge_profiles", [](const std::vector<std::string>& paths) {
    return to_json(answer(MergeProfilesRequest{paths}));
  });
  module.def("diff_profiles", [](const std::vector<std::string>& paths) {
    return to_json(answer(DiffProfilesRequest{paths}));
  });
}

}  // namespace plait
