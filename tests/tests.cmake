find_package(GTest REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
include(GoogleTest)

# A search of its own that judges the planners, and a program that compares them.
set(second_opinion tests/second_opinion/changes.cpp tests/second_opinion/idle_changes.cpp
                   tests/second_opinion/local_search.cpp
                   tests/second_opinion/mixed_problem.cpp tests/second_opinion/one_layout.cpp
                   tests/second_opinion/sketch.cpp
                   tests/second_opinion/starts.cpp)
# Readers under test with any bytes; tests/fuzz/fuzz_test.cpp replays corpora, ./dev fuzz draws new ones.
set(fuzz_readers tests/fuzz/configuration_readers.cpp tests/fuzz/mutate.cpp tests/fuzz/readers.cpp
                 tests/fuzz/run_readers.cpp)
# Pairs of problems of which one is better off; the same.
set(monotone tests/monotone/pairs.cpp tests/second_opinion/mixed_problem.cpp)
add_executable(plait_tests ${tests} ${second_opinion} ${fuzz_readers} tests/monotone/every_pin.cpp
                           tests/monotone/pairs.cpp src/runtime/no_backend.cpp tests/random_problem.cpp
                           tests/sample_frameworks.cpp tests/source_tree.cpp
                           src/python/keywords.cpp)
our_own(plait_tests)
# As with what is asked once: compiling them takes longer than running them.
target_compile_options(plait_tests PRIVATE $<$<CONFIG:Release>:-O1>)
# Tests of readers have functions of the same names (complaint, read), as have these.
file(GLOB_RECURSE own_names CONFIGURE_DEPENDS src/io/*_test.cpp)
set_source_files_properties(
  ${own_names} src/app/clusters/replan_test.cpp src/cli/flags/setters_test.cpp
  src/cost/layer/synchronised_test.cpp src/graph/search/search_test.cpp src/graph/search/placement/route_test.cpp
  src/search/space/shortlist_test.cpp tests/nearest_test.cpp tests/oracle_bound_test.cpp tests/peers_test.cpp
  src/search/inside/stage_insides_test.cpp tests/aceso_formula_test.cpp tests/cover_bound_test.cpp
  tests/second_opinion/one_layout.cpp tests/property/metamorphic_test.cpp tests/property/proofs_test.cpp tests/property/targets_test.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
compile_together(plait_tests 0)
target_include_directories(plait_tests PRIVATE tests)
target_link_libraries(plait_tests PRIVATE plait_cli plait_core GTest::gtest_main)
if(heavy_headers)
  target_precompile_headers(plait_tests PRIVATE ${heavy_headers} <gtest/gtest.h>)
endif()
set_source_files_properties(tests/source_tree.cpp PROPERTIES
                            COMPILE_DEFINITIONS PLAIT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
if(TARGET plait)
  add_dependencies(plait_tests plait)
endif()

add_executable(compare_opinions EXCLUDE_FROM_ALL ${second_opinion}
                                                 tests/second_opinion/compare_opinions.cpp)
target_include_directories(compare_opinions PRIVATE tests)
target_link_libraries(compare_opinions PRIVATE plait_core)
add_executable(compare_bounds EXCLUDE_FROM_ALL ${second_opinion}
                                               tests/second_opinion/compare_bounds.cpp)
target_include_directories(compare_bounds PRIVATE tests)
target_link_libraries(compare_bounds PRIVATE plait_core)
add_executable(compare_pairs EXCLUDE_FROM_ALL ${monotone} tests/monotone/compare_pairs.cpp)
our_own(compare_opinions compare_bounds compare_pairs)
target_include_directories(compare_pairs PRIVATE tests)
target_link_libraries(compare_pairs PRIVATE plait_core)

add_executable(compare_targets EXCLUDE_FROM_ALL ${second_opinion} tests/monotone/every_pin.cpp
                                                tests/monotone/compare_targets.cpp)
our_own(compare_targets)
target_include_directories(compare_targets PRIVATE tests)
target_link_libraries(compare_targets PRIVATE plait_core)

add_executable(compare_recompute EXCLUDE_FROM_ALL ${monotone} tests/monotone/compare_recompute.cpp)
target_include_directories(compare_recompute PRIVATE tests)
target_link_libraries(compare_recompute PRIVATE plait_core)

add_executable(count_inputs EXCLUDE_FROM_ALL ${fuzz_readers} tests/fuzz/count_inputs.cpp
                                            tests/source_tree.cpp src/runtime/no_backend.cpp)
our_own(count_inputs)
target_include_directories(count_inputs PRIVATE tests)
target_link_libraries(count_inputs PRIVATE plait_core)

# Suites named Slow... run only in ./dev test --all.
gtest_discover_tests(plait_tests TEST_FILTER "-Slow*" TEST_PREFIX "${PLAIT_TEST_PREFIX}"
                     DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 300)
gtest_discover_tests(plait_tests TEST_FILTER "Slow*" TEST_PREFIX "${PLAIT_TEST_PREFIX}"
                     TEST_LIST slow_tests DISCOVERY_TIMEOUT 120
                     PROPERTIES LABELS slow TIMEOUT 1800)

# The program, as users and scripts run it.
if(TARGET plait)
  foreach(name cli plan_verbs reported reported_files saved_plans export trial bad_input injection peer_rows graph)
    add_test(NAME ${PLAIT_TEST_PREFIX}${name}
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/${name}_test.py
                     --program $<TARGET_FILE:plait>)
    set_tests_properties(${PLAIT_TEST_PREFIX}${name} PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77)
  endforeach()
endif()

# Random problems, planned and given to the other verbs. The seed changes every day and is printed.
if(TARGET plait)
  set(campaign ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/campaign/campaign.py --program $<TARGET_FILE:plait> --jobs 2)
  if(PLAIT_SANITIZE)
    add_test(NAME ${PLAIT_TEST_PREFIX}campaign COMMAND ${campaign} --problems 12 --unbounded)
    add_test(NAME ${PLAIT_TEST_PREFIX}long_campaign COMMAND ${campaign} --first 1000 --problems 200 --unbounded)
  else()
    add_test(NAME campaign COMMAND ${campaign} --problems 40)
    add_test(NAME long_campaign COMMAND ${campaign} --first 1000 --problems 1000)
  endif()
  set_tests_properties(${PLAIT_TEST_PREFIX}campaign PROPERTIES TIMEOUT 600)
  set_tests_properties(${PLAIT_TEST_PREFIX}long_campaign PROPERTIES LABELS slow TIMEOUT 3600)
endif()

# Calls to the system that fail; sanitizers have an allocator of their own.
if(TARGET plait AND NOT PLAIT_SANITIZE)
  add_library(failing_calls MODULE tests/failing/failing_calls.cpp)
  our_own(failing_calls)
  target_link_libraries(failing_calls PRIVATE ${CMAKE_DL_LIBS})
  add_test(NAME failing COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/failing_test.py
                                --program $<TARGET_FILE:plait> --library $<TARGET_FILE:failing_calls>)
  set_tests_properties(failing PROPERTIES TIMEOUT 600)
endif()

# Plans of plait graph, executed under JAX (./dev setup_jax); skipped where it is absent.
if(TARGET plait AND NOT PLAIT_SANITIZE)
  add_test(NAME graph_jax
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/graph_jax_test.py
                   --program $<TARGET_FILE:plait>)
  add_test(NAME graph_rank
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/graph_rank_test.py
                   --program $<TARGET_FILE:plait>)
  set_tests_properties(graph_jax graph_rank PROPERTIES LABELS slow TIMEOUT 1800
                                                       SKIP_RETURN_CODE 77)
  set_tests_properties(graph_jax PROPERTIES PROCESSORS 2)
  set_tests_properties(graph_rank PROPERTIES RUN_SERIAL TRUE)  # it takes times
endif()

# The Python package, built and installed as users do it (./dev setup_python); skipped where that is absent.
if(TARGET plait AND NOT PLAIT_SANITIZE)
  add_test(NAME python COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/python_test.py)
  set_tests_properties(python PROPERTIES LABELS slow TIMEOUT 3600 SKIP_RETURN_CODE 77)
endif()

# Jobs for Slurm, run by a Slurm of its own; skipped where that is not installed.
if(TARGET plait AND NOT PLAIT_SANITIZE)
  add_test(NAME slurm COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/slurm_test.py
                              --program $<TARGET_FILE:plait>)
  set_tests_properties(slurm PROPERTIES LABELS slow TIMEOUT 900 SKIP_RETURN_CODE 77)
endif()

# Launches of Megatron-LM that its repository publishes, of up to 3,072 devices.
if(TARGET plait AND NOT PLAIT_SANITIZE)
  add_test(NAME published_launches
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/published_launches_test.py
                   --program $<TARGET_FILE:plait>)
  set_tests_properties(published_launches PROPERTIES LABELS slow TIMEOUT 3600)
endif()

# Exports, judged by the programs that they are written for (./dev test --targets makes build/targets).
if(TARGET plait AND NOT PLAIT_SANITIZE)
  add_test(NAME targets
           COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/targets_test.py
                   --program $<TARGET_FILE:plait>)
  set_tests_properties(targets PROPERTIES LABELS slow TIMEOUT 3600 SKIP_RETURN_CODE 77)
endif()

# What needs libtorch, end to end. Runs in seconds of work, but ranks start slowly on busy machines.
if(TARGET plait-torch)
  foreach(name faults strangers slow_faults)
    add_test(NAME ${PLAIT_TEST_PREFIX}torch.${name}
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/${name}_test.py
                     --program $<TARGET_FILE:plait>)
    set_tests_properties(${PLAIT_TEST_PREFIX}torch.${name} PROPERTIES TIMEOUT 900)
  endforeach()
  set_tests_properties(${PLAIT_TEST_PREFIX}torch.slow_faults PROPERTIES LABELS slow TIMEOUT 3600)
endif()

# Tests of the tree and of the documents say the same under every compiler flag: once is enough.
if(NOT PLAIT_SANITIZE)
  add_test(NAME layers COMMAND ${Python3_EXECUTABLE} scripts/check_layers.py src
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  add_test(NAME tree COMMAND ${Python3_EXECUTABLE} scripts/check_tree.py
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  # "golden" in its name: ./dev golden rewrites the document.
  add_test(NAME golden_constants COMMAND ${Python3_EXECUTABLE} scripts/constant_tables.py
           WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  if(TARGET plait)
    add_test(NAME docs COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/readme_test.py
                               --program $<TARGET_FILE:plait>)
    set_tests_properties(docs PROPERTIES TIMEOUT 300)
    add_test(NAME readme_plans
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/readme_plans_test.py
                     --program $<TARGET_FILE:plait>)
    set_tests_properties(readme_plans PROPERTIES TIMEOUT 900)
    # Half a minute of work on 2 cores; ./dev golden rewrites the table.
    add_test(NAME quality COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/quality_test.py
                                  --program $<TARGET_FILE:plait>)
    set_tests_properties(quality PROPERTIES TIMEOUT 900)
  endif()
endif()
