# Tests that are not GoogleTest cases.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME layers
         COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/check_layers.py ${CMAKE_SOURCE_DIR}/src)
