# Tests of the project that need nothing above the engine, as one program. Those of NCCL's models
# and those that run for seconds are left out, to keep this build short: `make test` runs them.
find_package(GTest)
if(NOT GTest_FOUND)
  return()
endif()
enable_testing()
set(TESTS
    collective/footprint_test.cc
    compress/blocks_test.cc
    compress/momentum_correction_test.cc
    plan/priority_test.cc
    run/link_sharing_test.cc
    run/stragglers_test.cc
    run/walk_test.cc)
if(SIMGRID_FOUND)
  list(APPEND TESTS sim/cost_model_test.cc sim/grains_test.cc)
endif()
list(TRANSFORM TESTS PREPEND ${SYNCLINE_ROOT}/tests/)
add_executable(syncline_core_tests ${TESTS})
set_target_properties(syncline_core_tests PROPERTIES UNITY_BUILD ${SYNCLINE_TOGETHER}
                                                     UNITY_BUILD_BATCH_SIZE 0)
target_include_directories(syncline_core_tests PRIVATE ${SYNCLINE_ROOT})
target_compile_options(syncline_core_tests PRIVATE -O0)
target_link_libraries(syncline_core_tests PRIVATE syncline_metrics syncline_cost GTest::gtest_main)
if(SIMGRID_FOUND)
  target_link_libraries(syncline_core_tests PRIVATE syncline_sim)
endif()
add_test(NAME syncline_core_tests COMMAND syncline_core_tests --gtest_brief=1)
