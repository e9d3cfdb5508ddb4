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

TEST(Installed, ABuiltProgramHasItsDataBesideIt) {
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

TEST(Installed, ALibraryLiesBesideTheProgramOrBelowThePrefix) {
  const test::Scratch prefix;
  fs::create_directories(prefix.path("bin"));
  EXPECT_EQ(own_library("x.so", prefix.path("bin")), "");
  fs::create_directories(prefix.path("lib/syncline/modules"));
  test::write_text(prefix.path("lib/syncline/modules/x.so"), "");
  EXPECT_EQ(own_library("x.so", prefix.path("bin")), prefix.path("lib/syncline/modules/x.so"));
  test::write_text(prefix.path("bin/x.so"), "");
  EXPECT_EQ(own_library("x.so", prefix.path("bin")), prefix.path("bin/x.so"));
}

}  // namespace
}  // namespace syncline
