# Debian's libtorch-dev, or another libtorch through CMAKE_PREFIX_PATH.
if(PLAIT_TORCH STREQUAL "ON")
  find_package(Torch REQUIRED)
else()
  find_package(Torch QUIET)
endif()
if(NOT Torch_FOUND)
  return()
endif()

add_library(plait_torch STATIC ${torch_sources})
our_own(plait_torch)
compile_together(plait_torch 0)
target_link_libraries(plait_torch PUBLIC plait_core)
# Its headers do not pass our warnings.
target_include_directories(plait_torch SYSTEM PUBLIC ${TORCH_INCLUDE_DIRS})
# The compiler's C++ library first: libtorch.so of PyTorch's wheels has parts of another one inside, and a program
# that finds std::filesystem::remove_all there calls address 0.
target_link_libraries(plait_torch PUBLIC stdc++ ${TORCH_LIBRARIES})
target_compile_definitions(plait_torch PUBLIC USE_C10D_GLOO)
find_path(gloo_headers gloo/algorithm.h)
if(NOT gloo_headers)
  target_include_directories(plait_torch SYSTEM PRIVATE cmake/gloo_forward)
endif()
find_path(nccl_headers nccl.h HINTS ${TORCH_INSTALL_PREFIX}/../nvidia/nccl/include)
if(TORCH_CUDA_LIBRARIES AND nccl_headers)
  target_compile_definitions(plait_torch PUBLIC USE_C10D_NCCL)
  target_include_directories(plait_torch SYSTEM PRIVATE ${nccl_headers})
endif()
# PyTorch's wheels bring headers of another fmt, without its library.
if(EXISTS ${TORCH_INSTALL_PREFIX}/include/fmt/format.h)
  target_compile_definitions(plait_torch PUBLIC FMT_HEADER_ONLY)
endif()
separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
# GCC 13 sees writes beyond the small arrays of libtorch 2's inlined lists; there are none.
target_compile_options(plait_torch PUBLIC ${torch_flags} -Wno-array-bounds -Wno-stringop-overflow)

add_executable(plait-torch src/cli/main.cpp)
our_own(plait-torch)
target_link_libraries(plait-torch PRIVATE plait_cli plait_torch)

if(PLAIT_TESTS AND torch_tests)
  find_package(GTest REQUIRED)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  include(GoogleTest)
  add_executable(plait_torch_tests ${torch_tests})
  our_own(plait_torch_tests)
  compile_together(plait_torch_tests 0)
  set_source_files_properties(src/runtime/torch/train/checkpointing_test.cpp
                              PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  target_compile_options(plait_torch_tests PRIVATE $<$<CONFIG:Release>:-O1>)
  target_link_libraries(plait_torch_tests PRIVATE plait_torch GTest::gtest_main)
  add_dependencies(plait_torch_tests plait plait-torch)
  gtest_discover_tests(plait_torch_tests TEST_FILTER "-Slow*" TEST_PREFIX "${PLAIT_TEST_PREFIX}torch."
                       DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 300)
  gtest_discover_tests(plait_torch_tests TEST_FILTER "Slow*" TEST_PREFIX "${PLAIT_TEST_PREFIX}torch."
                       TEST_LIST slow_torch_tests DISCOVERY_TIMEOUT 120
                       PROPERTIES LABELS slow TIMEOUT 1800)
  foreach(name profile train launchers)
    add_test(NAME ${PLAIT_TEST_PREFIX}torch.${name}
             COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/${name}_test.py
                     --program $<TARGET_FILE:plait>)
    set_tests_properties(${PLAIT_TEST_PREFIX}torch.${name} PROPERTIES TIMEOUT 600)
  endforeach()
endif()
