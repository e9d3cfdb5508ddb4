# What the engine's rooms need when they are built without the rest of the project.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
option(SYNCLINE_TOGETHER "Compile the sources of a room several at a time" ON)

find_package(Eigen3 REQUIRED NO_MODULE)
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(SIMGRID QUIET IMPORTED_TARGET simgrid)
endif()
message(STATUS "SimGrid: ${SIMGRID_VERSION}")

add_library(syncline_flags INTERFACE)
target_compile_options(syncline_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                                -Wnon-virtual-dtor -Wmissing-declarations)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(syncline_flags INTERFACE -Wno-restrict)  # GCC bug 105651
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
  # The engine knows no JSON: a source that names its library does not compile.
  file(WRITE ${PROJECT_BINARY_DIR}/no_json.h "#pragma GCC poison nlohmann\n")
  target_compile_options(syncline_flags INTERFACE "SHELL:-include ${PROJECT_BINARY_DIR}/no_json.h")
endif()

include(../cmake/rooms.cmake)
