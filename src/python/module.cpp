// plait._core: what the Python package calls. The package turns values into texts and texts into
// values; `app` answers (docs/adr/0016-python-package.md).
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/version.h"
#include "io/format/text_file.h"
#include "python/answered.h"

namespace plait {
namespace {

namespace nb = nanobind;

// An instance of the package's own class of that name.
void raise_input_error(const std::string& where, const std::string& what) {
  const nb::object type = nb::module_::import_("plait._errors").attr("InputError");
  PyErr_SetObject(type.ptr(), type(where, what).ptr());
}

void raise_input_error(const InputError& error) {
  const std::string whole = error.what();
  const std::size_t prefix = error.where().size() + 2;  // "where: what"
  raise_input_error(in_keywords(error.where()), in_keywords(whole.substr(prefix)));
}

void translate(const std::exception_ptr& raised, void*) {
  try {
    std::rethrow_exception(raised);
  } catch (const InputError& error) {
    raise_input_error(error);
  } catch (const std::filesystem::filesystem_error& error) {
    raise_input_error(error.path1().string(), error.code().message());
  } catch (const std::system_error& error) {
    PyErr_SetString(PyExc_OSError, error.code().message().c_str());
  }
}

void add_answers(nb::module_& module) {
  nb::class_<Answered>(module, "Answered")
      .def("json", [](const Answered& answer) { return answer.json(); })
      .def("text", [](const Answered& answer,
                      int columns) { return answer.text(Style{.columns = columns}); })
      .def("picture",
           [](const Answered& answer) { return answer.picture ? answer.picture() : std::string(); })
      .def_ro("plans", &Answered::plans)
      .def_ro("nearest", &Answered::nearest)
      .def_ro("files", &Answered::files)
      .def_ro("reason", &Answered::reason)
      .def_ro("interrupted", &Answered::interrupted)
      .def_ro("seconds", &Answered::seconds);
  nb::class_<KeywordEntry>(module, "KeywordEntry")
      .def_ro("name", &KeywordEntry::name)
      .def_ro("aliases", &KeywordEntry::aliases)
      .def_ro("value", &KeywordEntry::value)
      .def_ro("help", &KeywordEntry::help)
      .def_ro("repeats", &KeywordEntry::repeats);
}

}  // namespace
}  // namespace plait

NB_MODULE(_core, module) {
  nanobind::register_exception_translator(plait::translate);
  module.attr("__version__") = std::string(plait::version());
  module.def("write_file", plait::write_text_file);
  plait::add_saved_calls(module);
  plait::add_answers(module);
  plait::add_plan_calls(module);
  plait::add_known_calls(module);
}
