// The installed tree, in a folder of the test's own: it is complete, it can be moved, it needs
// nothing of the sources, programs are built on it, and it goes away without a trace.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/program.h"
#include "tests/support/text.h"

namespace syncline {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::contains;
using test::Program;
using test::Ran;

// Installed once, then moved: what still named the first place would fail.
class Package : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = new test::Scratch;
    const std::string first = scratch_->path("first");
    const Ran installed =
        Program({SYNCLINE_CMAKE, "--install", SYNCLINE_BUILD_DIR, "--prefix", "/usr/local"},
                {{"DESTDIR", first}})
            .wait();
    ASSERT_EQ(installed.code, 0) << installed.err;
    fs::rename(first + "/usr/local", tree());
    fs::remove_all(first);
    fs::create_directory(scratch_->path("empty"));
  }
  static void TearDownTestSuite() {
    delete scratch_;
    scratch_ = nullptr;
  }

  static std::string tree() { return scratch_->path("moved"); }
  static std::string path(const std::string& below) { return tree() + "/" + below; }

  // A program, started in an empty folder.
  static Ran run(const std::vector<std::string>& words, const test::Variables& environment = {}) {
    const std::string empty = scratch_->path("empty");
    return Program(words, environment, [&] { EXPECT_EQ(::chdir(empty.c_str()), 0); }).wait();
  }
  static Ran syncline(std::vector<std::string> words) {
    words.insert(words.begin(), path("bin/syncline"));
    return run(words);
  }

  // What a program prints that is built on the library, against what the installed one does.
  static void expect_rows_of_the_program(const std::string& row) {
    const std::string scenario = path("share/syncline/scenarios/resnet50_ddp.json");
    const Ran printed = run({row, scenario});
    ASSERT_EQ(printed.code, 0) << printed.err;
    const Ran own = syncline({"run", scenario, "--format", "json"});
    ASSERT_EQ(own.code, 0) << own.err;
    std::istringstream lines(printed.out);
    const json rows = json::parse(own.out).at("rows");
    EXPECT_FALSE(rows.empty());
    for (const auto& expected : rows) {
      std::string line;
      std::getline(lines, line);
      EXPECT_EQ(expected.at("strategy"), line.substr(0, line.find(',')));
      EXPECT_EQ(std::stod(line.substr(line.find(',') + 1)), expected.at("step_time_s")) << line;
    }
  }

  static test::Scratch* scratch_;
};

test::Scratch* Package::scratch_ = nullptr;

TEST_F(Package, RunsFromAnEmptyFolder) {
  EXPECT_EQ(syncline({"--version"}).out, test::syncline_run({"--version"}).out);
  const Ran ran = syncline({"run", path("share/syncline/scenarios/resnet50_ddp.json")});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "fp16 hook")) << ran.out;
}

// On a login node there is none of them. Debian 13's own Gloo brings an MPI with it.
TEST_F(Package, IsLinkedToNeitherMpiNorCuda) {
  const Ran linked = run({"readelf", "--dynamic", path("bin/syncline")});
  ASSERT_TRUE(contains(linked.out, "[libstdc++")) << linked.out << linked.err;
  for (const char* library : {"libmpi", "libopen-rte", "libnccl", "libcudart", "libcuda."}) {
    EXPECT_FALSE(contains(linked.out, library)) << library << "\n" << linked.out;
  }
}

TEST_F(Package, FindsItsOwnScenarios) {
  const Ran list = syncline({"list"});
  EXPECT_TRUE(contains(list.out, path("share/syncline/scenarios/workloads/NAME.json"))) << list.out;
  const std::vector<std::string> question{"fidelity", "--set", "jobs", "--set", "live"};
  const Ran tables = syncline(question);
  ASSERT_EQ(tables.code, 0) << tables.err;
  auto asked = question;
  asked.insert(asked.end(), {"--from", std::string(SYNCLINE_SOURCE_DIR) + "/scenarios"});
  EXPECT_EQ(tables.out, test::syncline_run(asked).out);
}

TEST_F(Package, AnInstalledProgramTakesNothingFromTheSources) {
  const test::Scratch alone;
  fs::create_directory(alone.path("bin"));
  fs::copy(path("bin/syncline"), alone.path("bin/syncline"));
  const Ran ran = run({alone.path("bin/syncline"), "fidelity"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(contains(ran.err, alone.path("share/syncline/scenarios/published"))) << ran.err;
}

// Everything that the scenarios of the sources refer to was installed with them.
TEST_F(Package, EveryInstalledScenarioIsWhole) {
  const fs::path scenarios = path("share/syncline/scenarios");
  int checked = 0;
  for (const auto& entry : fs::recursive_directory_iterator(scenarios)) {
    if (entry.path().extension() != ".json") continue;
    const json file = json::parse(test::text_of(entry.path().string()));
    if (!file.is_object()) continue;
    const std::string link = file.value("$schema", "");
    if (!link.empty() && !link.starts_with("http")) {
      EXPECT_TRUE(fs::exists(entry.path().parent_path() / link)) << entry.path();
    }
    if (!file.contains("strategies") || !file.contains("workload")) continue;
    const Ran ran = syncline({"check", entry.path().string()});
    EXPECT_EQ(ran.code, 0) << ran.err;
    ++checked;
  }
  EXPECT_GT(checked, 30);
}

TEST_F(Package, FindPackageBuildsAProgram) {
  const test::Scratch build;
  const std::string consumer = std::string(SYNCLINE_SOURCE_DIR) + "/tests/package/consumer";
  const Ran configured =
      run({SYNCLINE_CMAKE, "-S", consumer, "-B", build.folder(), "-DCMAKE_PREFIX_PATH=" + tree(),
           std::string("-DCMAKE_CXX_COMPILER=") + SYNCLINE_CXX});
  ASSERT_EQ(configured.code, 0) << configured.out << configured.err;
  const Ran built = run({SYNCLINE_CMAKE, "--build", build.folder()});
  ASSERT_EQ(built.code, 0) << built.out << built.err;
  expect_rows_of_the_program(build.path("row"));
}

TEST_F(Package, PkgConfigBuildsAProgram) {
  const test::Scratch build;
  const Ran built = run({"sh", "-c",
                         std::string(SYNCLINE_CXX) + " " + SYNCLINE_SOURCE_DIR +
                             "/tests/package/consumer/row.cc -o " + build.path("row") +
                             " $(pkg-config --cflags --libs syncline)"},
                        {{"PKG_CONFIG_PATH", path("lib/pkgconfig")}});
  ASSERT_EQ(built.code, 0) << built.out << built.err;
  expect_rows_of_the_program(build.path("row"));
}

// Every header names what it needs, below the one folder that users are told of.
TEST_F(Package, HeadersIncludeNothingThatIsNotInstalled) {
  int headers = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path("include/syncline"))) {
    if (entry.path().extension() != ".h") continue;
    ++headers;
    std::istringstream lines(test::text_of(entry.path().string()));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("#include \"")) continue;
      const std::string name = line.substr(10, line.rfind('"') - 10);
      EXPECT_TRUE(fs::exists(path("include/syncline/" + name))) << entry.path() << ": " << line;
    }
  }
  EXPECT_GT(headers, 100);
}

TEST_F(Package, ManualAndCompletionAreInstalled) {
  const Ran manual = run({"gzip", "-dc", path("share/man/man1/syncline.1.gz")});
  EXPECT_TRUE(contains(manual.out, ".TH SYNCLINE 1 \"\" \"syncline ")) << manual.out.substr(0, 200);
  const auto printed = [&](const std::string& shell) {
    return syncline({"completion", shell}).out;
  };
  EXPECT_EQ(test::text_of(path("share/bash-completion/completions/syncline")), printed("bash"));
  EXPECT_EQ(test::text_of(path("share/zsh/site-functions/_syncline")), printed("zsh"));
  EXPECT_EQ(test::text_of(path("share/fish/vendor_completions.d/syncline.fish")), printed("fish"));
}

TEST_F(Package, UninstallRemovesTheInstalledFiles) {
  const test::Scratch root;
  const auto make = [&](const std::string& target) {
    // What is to be installed was built with this test.
    return run({"make", "-C", SYNCLINE_SOURCE_DIR, "-o", "installed", target,
                std::string("BUILD=") + SYNCLINE_BUILD_DIR, "DESTDIR=" + root.folder(),
                "PREFIX=/opt/x"});
  };
  const std::string below = root.path("opt/x");
  fs::create_directories(below + "/bin");
  test::write_text(below + "/bin/other", "");
  ASSERT_EQ(make("install").code, 0);
  EXPECT_TRUE(fs::exists(below + "/bin/syncline"));
  std::vector<fs::path> imported;
  for (const auto& entry : fs::recursive_directory_iterator(below + "/lib")) {
    if (entry.path().filename() == "__init__.py") imported.push_back(entry.path().parent_path());
  }
  for (const auto& folder : imported) {
    fs::create_directory(folder / "__pycache__");
    test::write_text((folder / "__pycache__" / "__init__.pyc").string(), "");
  }
  const Ran removed = make("uninstall");
  EXPECT_EQ(removed.code, 0) << removed.err;
  std::vector<std::string> left;
  for (const auto& entry : fs::recursive_directory_iterator(root.folder())) {
    const std::string name = fs::relative(entry.path(), below).string();
    if (!entry.is_directory() || contains(name, "yncline")) left.push_back(name);
  }
  EXPECT_EQ(left, std::vector<std::string>{"bin/other"});
  EXPECT_NE(make("uninstall").code, 0);
}

}  // namespace
}  // namespace syncline
