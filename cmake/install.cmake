# What `cmake --install` puts below a prefix. The program finds it from its own place
# (formats/text/installed.h), so that the whole can be moved.
#
#   bin/syncline
#   lib/syncline/          libsyncline.a; modules/: what is loaded, MPI's library and NCCL's tuner
#   lib/cmake, pkgconfig   for programs that are built on libsyncline.a
#   include/syncline/      its headers
#   share/syncline/        scenarios: schema, clusters, workloads, published tables
#   share/                 manual page, completion of three shells, licence, changes
#   lib/python3.*          syncline for Python, a component of its own
#
# A wheel (pyproject.toml) is another component: the program, what it loads and the scenarios lie in
# the folder of Python's package, in folders of the same names.

# A build finds its scenarios as an installed program does.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/syncline)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/scenarios ${PROJECT_BINARY_DIR}/share/syncline/scenarios
     SYMBOLIC)

if(SYNCLINE_SANITIZE OR SYNCLINE_SANITIZE_THREADS OR SYNCLINE_FUZZ)
  message(STATUS "Install: nothing of a build with sanitizers is installed, tests/package is left out")
  return()
endif()

# The rooms from core to studies, and imports, in one archive: programs link one library, in no order.
get_property(ARCHIVED GLOBAL PROPERTY SYNCLINE_ARCHIVED)
list(TRANSFORM ARCHIVED REPLACE "(.+)" "$<TARGET_OBJECTS:syncline_\\1>")
add_library(syncline_archive STATIC ${ARCHIVED})
set_target_properties(
  syncline_archive PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME syncline EXPORT_NAME syncline
                              ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/archive)
target_compile_features(syncline_archive PUBLIC cxx_std_20)
target_include_directories(syncline_archive INTERFACE $<INSTALL_INTERFACE:include/syncline>)
target_link_libraries(
  syncline_archive PUBLIC nlohmann_json::nlohmann_json Eigen3::Eigen ZLIB::ZLIB simdjson::simdjson
                          yaml-cpp EXPAT::EXPAT tomlplusplus::tomlplusplus)

# Manual page and completion are what the program itself says about its verbs.
set(MADE ${PROJECT_BINARY_DIR}/made)
file(MAKE_DIRECTORY ${MADE})
add_custom_command(
  OUTPUT ${MADE}/syncline.1.gz ${MADE}/syncline.bash ${MADE}/_syncline ${MADE}/syncline.fish
         ${MADE}/changelog.gz
  COMMAND sh ${PROJECT_SOURCE_DIR}/docs/manual.sh $<TARGET_FILE:syncline> >${MADE}/syncline.1
  COMMAND gzip -9nf ${MADE}/syncline.1
  COMMAND syncline completion bash >${MADE}/syncline.bash
  COMMAND syncline completion zsh >${MADE}/_syncline
  COMMAND syncline completion fish >${MADE}/syncline.fish
  COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/packaging/changelog >${MADE}/changelog.gz
  DEPENDS syncline syncline_modules docs/manual.sh packaging/changelog
  COMMENT "Writing the manual page and the shells' completion")
add_custom_target(syncline_made ALL DEPENDS ${MADE}/syncline.1.gz)
# All that is installed.
get_property(MODULES GLOBAL PROPERTY SYNCLINE_MODULES)
add_custom_target(syncline_installed DEPENDS syncline syncline_archive syncline_nccl_tuner
                                             syncline_made ${MODULES})

set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME syncline)
# What the program needs to run, below a folder.
function(syncline_install_program below)
  install(TARGETS syncline RUNTIME DESTINATION ${below}bin ${ARGN})
  install(TARGETS syncline_nccl_tuner ${MODULES}
          LIBRARY DESTINATION ${below}lib/syncline/modules ${ARGN})
  if(TARGET syncline_mpi)
    install(TARGETS syncline_mpi LIBRARY DESTINATION ${below}lib/syncline/modules ${ARGN})
  endif()
  install(DIRECTORY scenarios DESTINATION ${below}share/syncline ${ARGN} FILES_MATCHING
          PATTERN "*.json" PATTERN "*.txt" PATTERN "*.csv" PATTERN "*.md"
          PATTERN jobs EXCLUDE PATTERN record EXCLUDE)
  install(DIRECTORY scenarios/published/jobs
          DESTINATION ${below}share/syncline/scenarios/published ${ARGN})
endfunction()
# Python's package, as the folder `place`.
function(syncline_install_package place)
  install(TARGETS syncline_module LIBRARY DESTINATION ${place} ${ARGN})
  install(FILES python/syncline/__init__.py DESTINATION ${place} ${ARGN})
  foreach(name record apply tuner)
    install(FILES pytorch/syncline_${name}.py DESTINATION ${place} RENAME ${name}.py ${ARGN})
  endforeach()
endfunction()

syncline_install_program("")
install(FILES ${MADE}/syncline.1.gz DESTINATION share/man/man1)
install(FILES ${MADE}/syncline.bash DESTINATION share/bash-completion/completions RENAME syncline)
# Debian's zsh looks for a package's in the second place.
install(FILES ${MADE}/_syncline DESTINATION share/zsh/site-functions)
install(FILES ${MADE}/_syncline DESTINATION share/zsh/vendor-completions)
install(FILES ${MADE}/syncline.fish DESTINATION share/fish/vendor_completions.d)
install(FILES packaging/copyright ${MADE}/changelog.gz DESTINATION share/doc/syncline)

# For programs that are built on the library.
foreach(folder core catalogue formats studies imports)
  install(DIRECTORY ${folder} DESTINATION include/syncline FILES_MATCHING PATTERN "*.h"
          PATTERN examples EXCLUDE)
endforeach()
install(TARGETS syncline_archive EXPORT SynclineTargets ARCHIVE DESTINATION lib/syncline)
install(EXPORT SynclineTargets NAMESPACE Syncline:: DESTINATION lib/cmake/Syncline)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${MADE}/SynclineConfigVersion.cmake COMPATIBILITY ExactVersion)
install(FILES cmake/SynclineConfig.cmake ${MADE}/SynclineConfigVersion.cmake
        DESTINATION lib/cmake/Syncline)
configure_file(cmake/syncline.pc.in ${MADE}/syncline.pc @ONLY)
install(FILES ${MADE}/syncline.pc DESTINATION lib/pkgconfig)

if(TARGET syncline_module)
  add_dependencies(syncline_installed syncline_module)
  # Where Python looks; Debian's shares a folder among versions below /usr, and there alone.
  string(REGEX MATCH "[a-z]+-packages$" packages ${Python_SITEARCH})
  set(elsewhere lib/python3.${Python_VERSION_MINOR}/${packages})
  set(below_usr ${elsewhere})
  if(packages STREQUAL dist-packages)
    set(below_usr lib/python3/dist-packages)
  endif()
  install(CODE "set(PYTHON_SITE ${elsewhere})
    if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
      set(PYTHON_SITE ${below_usr})
    endif()" COMPONENT python)
  set(PYTHON_SITE "\${PYTHON_SITE}/syncline")
  syncline_install_package(${PYTHON_SITE} COMPONENT python)
  install(FILES packaging/copyright ${MADE}/changelog.gz DESTINATION share/doc/python3-syncline
          COMPONENT python)
  syncline_install_program(syncline/ COMPONENT wheel EXCLUDE_FROM_ALL)
  syncline_install_package(syncline COMPONENT wheel EXCLUDE_FROM_ALL)
endif()

include(cmake/package.cmake)
