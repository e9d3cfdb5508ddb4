# The Debian packages, syncline and python3-syncline: `make deb`.
# Packing builds nothing: what it needs is the target syncline_installed.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME syncline)
set(CPACK_PACKAGE_VENDOR "Syncline developers")
set(CPACK_PACKAGE_CONTACT "Syncline developers <syncline@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "predicts and tunes gradient synchronisation in training")
set(CPACK_PACKAGE_DESCRIPTION
    "Syncline reads what a data-parallel training exchanges, on which machines and\nby which strategies, and answers with step times, speedups and lower bounds; it\nfinds the best strategy and writes it as a framework's settings.\n.\nPlans run in a closed-form model, in a simulation on SimGrid, and on real ranks\n(Gloo; NCCL and MPI where they are, which are loaded when they are needed).\nThe package holds the program, published measurements to compare with, and a\nstatic library with its headers.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL syncline)
set(CPACK_DEBIAN_SYNCLINE_PACKAGE_NAME syncline)
set(CPACK_COMPONENT_SYNCLINE_DESCRIPTION ${CPACK_PACKAGE_DESCRIPTION})
# For programs that are built on the library.
set(CPACK_DEBIAN_SYNCLINE_PACKAGE_SUGGESTS
    "nlohmann-json3-dev, libeigen3-dev, zlib1g-dev, libsimdjson-dev, libyaml-cpp-dev, libexpat1-dev, libtomlplusplus-dev")
install(FILES packaging/lintian-overrides DESTINATION share/lintian/overrides RENAME syncline)
if(TARGET syncline_module)
  list(APPEND CPACK_COMPONENTS_ALL python)
  math(EXPR next "${Python_VERSION_MINOR} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-syncline)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS
      "python3 (>= 3.${Python_VERSION_MINOR}), python3 (<< 3.${next})")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "syncline")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-torch, python3-pandas")
  set(CPACK_COMPONENT_PYTHON_DESCRIPTION
      "Syncline predicts and tunes how a data-parallel training synchronises its\ngradients. This package holds its verbs as functions of Python, with tables and\nfigures for notebooks, and the two modules for PyTorch jobs: one records a job,\none applies what was found.")
endif()
include(CPack)
