# cmake --install, and what packages are made of. Components: `program`, `torch` (plait-torch, where it was
# built) and `python` (all of a wheel, which pip installs).
include(GNUInstallDirs)
# Packages are made of what is built; tests and benchmarks need not be.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(jax_runner python/plait/compiled.py python/plait/constraints.py python/plait/internals.py
               python/plait/jax.py python/plait/measure.py python/plait/runs.py python/plait/tags.py)
if(DEFINED SKBUILD)
  install(TARGETS plait DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
  install(FILES ${jax_runner} DESTINATION ${SKBUILD_DATA_DIR}/share/plait COMPONENT python)
  install(TARGETS plait_python DESTINATION plait COMPONENT python)
  return()
endif()

install(TARGETS plait RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(FILES ${jax_runner} DESTINATION ${CMAKE_INSTALL_DATADIR}/plait COMPONENT program)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT program)
if(TARGET plait-torch)
  install(TARGETS plait-torch RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT torch)
endif()

# cpack -G DEB in the build folder: plait_0.1.0_amd64.deb, whose dependencies dpkg-shlibdeps finds.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME plait)
set(CPACK_PACKAGE_VENDOR plait)
set(CPACK_PACKAGE_CONTACT "the plait developers <plait@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "finds the fastest way to train a neural network on given devices")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3")
include(CPack)
