# find_package(Syncline) gives Syncline::syncline, the rooms of core in one library.
include(CMakeFindDependencyMacro)
find_dependency(nlohmann_json)
find_dependency(Eigen3)
find_dependency(ZLIB)
find_dependency(simdjson)
find_dependency(yaml-cpp)
find_dependency(EXPAT)
include(${CMAKE_CURRENT_LIST_DIR}/SynclineTargets.cmake)
