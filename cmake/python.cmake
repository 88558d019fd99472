# The compiled part of the Python package (docs/adr/0016-python.md). nanobind is that of the interpreter:
# pip brings it (pyproject.toml), ./dev setup_python makes an environment that has it.
find_package(
  Python 3.9 REQUIRED
  COMPONENTS Interpreter Development.Module
  OPTIONAL_COMPONENTS Development.SABIModule)
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir RESULT_VARIABLE failed
                OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(failed)
  message(FATAL_ERROR "${Python_EXECUTABLE} has no nanobind: ./dev setup_python, then "
                      "cmake -DPython_EXECUTABLE=build/python/bin/python, or pip install .")
endif()
find_package(nanobind CONFIG REQUIRED)

file(GLOB python_sources CONFIGURE_DEPENDS src/python/*.cpp)
list(FILTER python_sources EXCLUDE REGEX "_test\\.cpp$")
nanobind_add_module(plait_python STABLE_ABI NOMINSIZE NB_SUPPRESS_WARNINGS ${python_sources}
                    src/runtime/no_backend.cpp)
our_own(plait_python)
target_link_libraries(plait_python PRIVATE plait_cli)
set_target_properties(
  plait_python PROPERTIES OUTPUT_NAME _core LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python/plait)
# Other libraries in the same process may have an fmt or a JSON library of their own.
target_link_options(plait_python PRIVATE -Wl,--exclude-libs,ALL)
