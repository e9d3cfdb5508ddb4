# The Debian package: `make deb`.
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
# For programs that are built on the library.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
    "nlohmann-json3-dev, libeigen3-dev, zlib1g-dev, libsimdjson-dev")
install(FILES packaging/lintian-overrides DESTINATION share/lintian/overrides RENAME syncline)
include(CPack)
