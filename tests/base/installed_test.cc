// Where a program finds what came with it: from its own place, built or installed.
#include "formats/text/installed.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/scratch.h"

namespace syncline {
namespace {

namespace fs = std::filesystem;

TEST(Installed, ThisProgramIsWhereTheBuildPutIt) {
  EXPECT_TRUE(fs::exists(program_folder() / "syncline_base_tests")) << program_folder();
}

TEST(Installed, ABuiltProgramHasItsDataNextToIt) {
  const test::Scratch build;
  fs::create_directories(build.path("share/syncline"));
  EXPECT_EQ(data_folder(build.folder()), build.path("share/syncline"));
}

TEST(Installed, AnInstalledProgramHasItsDataBelowItsPrefix) {
  const test::Scratch prefix;
  fs::create_directories(prefix.path("bin"));
  fs::create_directories(prefix.path("share/syncline"));
  EXPECT_EQ(data_folder(prefix.path("bin")), prefix.path("share/syncline"));
}

TEST(Installed, WithoutDataTheInstalledPlaceIsNamed) {
  const test::Scratch prefix;
  EXPECT_EQ(data_folder(prefix.path("bin")), prefix.path("share/syncline"));
}

TEST(Installed, ALibraryLiesNextToTheProgramOrBelowThePrefix) {
  const test::Scratch prefix;
  fs::create_directories(prefix.path("bin"));
  EXPECT_EQ(own_library("x.so", prefix.path("bin")), "");
  fs::create_directories(prefix.path("lib/syncline/modules"));
  test::write_text(prefix.path("lib/syncline/modules/x.so"), "");
  EXPECT_EQ(own_library("x.so", prefix.path("bin")), prefix.path("lib/syncline/modules/x.so"));
  test::write_text(prefix.path("bin/x.so"), "");
  EXPECT_EQ(own_library("x.so", prefix.path("bin")), prefix.path("bin/x.so"));
}

// A folder in which a test works, with what a build of the program has there.
class WorkingFolder : public ::testing::Test {
 protected:
  WorkingFolder() { fs::current_path(folder_.folder()); }
  ~WorkingFolder() override { fs::current_path(before_); }

  // Of this program, as the build laid it.
  static std::string shipped(const std::string& name) {
    return (data_folder() / "scenarios" / name).string();
  }

  const fs::path before_ = fs::current_path();
  const test::Scratch folder_;
};

TEST_F(WorkingFolder, WithoutScenariosThoseThatShipAreFoundByTheirName) {
  EXPECT_EQ(scenario_path("scenarios/first.json"), shipped("first.json"));
  EXPECT_EQ(scenario_path("./scenarios/first.json"), shipped("first.json"));
  EXPECT_EQ(scenario_path("scenarios/published/../first.json"), shipped("first.json"));
}

TEST_F(WorkingFolder, OnlyShippedScenariosAreFoundByName) {
  for (const char* named : {"first.json", "other/scenarios/first.json", "scenarios/none.json",
                            "../scenarios/first.json", "scenarios/../../first.json", ""}) {
    EXPECT_EQ(scenario_path(named), named);
  }
}

TEST_F(WorkingFolder, AUsersScenariosHideThoseThatShip) {
  fs::create_directory("scenarios");
  EXPECT_EQ(scenario_path("scenarios/first.json"), "scenarios/first.json");
}

}  // namespace
}  // namespace syncline
