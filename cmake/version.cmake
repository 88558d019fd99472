# Writes a C++ file with the program's version: cmake -DOUTPUT= -DVERSION= -DSOURCE= -P version.cmake
# 0.1.0+3f2a91c, or 0.1.0+3f2a91c-changed where files differ from the commit; 0.1.0 outside of git.
set(version ${VERSION})
execute_process(
  COMMAND git -C ${SOURCE} describe --always --dirty=-changed --exclude=* --abbrev=9
  OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(NOT failed AND commit)
  set(version ${VERSION}+${commit})
endif()
set(code "#include \"base/version.h\"\n\nnamespace plait {\n\nstd::string_view version() { return \"${version}\"; }\n\n}  // namespace plait\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT "${before}" STREQUAL "${code}")
  file(WRITE ${OUTPUT} "${code}")
endif()
