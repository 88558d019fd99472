# One program for the readers of tests/fuzz/readers.cpp; corpora lie in tests/fuzz/corpus.
add_executable(plait_fuzz tests/fuzz/fuzz_target.cpp tests/fuzz/configuration_readers.cpp tests/fuzz/mutate.cpp tests/fuzz/readers.cpp
                 tests/fuzz/run_readers.cpp
                          src/runtime/no_backend.cpp)
our_own(plait_fuzz)
target_include_directories(plait_fuzz PRIVATE tests)
target_link_libraries(plait_fuzz PRIVATE plait_core)
target_link_options(plait_fuzz PRIVATE -fsanitize=fuzzer)
