// Small scenarios with their whole printed answer, and every scenario that ships.
//
// tests/golden holds for NAME.json what the model makes of it: NAME.txt, the table, and
// NAME.report.json. After a change that is meant, SYNCLINE_UPDATE_GOLDEN=1 rewrites them; read the
// difference before it is committed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/executor.h"
#include "formats/input/document.h"
#include "reports/run_report.h"
#include "studies/study/study.h"
#include "tests/support/printed.h"

namespace syncline {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SYNCLINE_SOURCE_DIR;

std::vector<fs::path> scenarios_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    const bool scenario = path.extension() == ".json" && path.stem().extension().empty();
    if (scenario && path.filename() != "schema.json") files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string name_of(const testing::TestParamInfo<fs::path>& file) {
  return file.param.parent_path().filename().string() + "_" + file.param.stem().string();
}

// The same line; figures at the end of a JSON line may differ by a few ulps, which another order of
// the same additions leaves.
bool alike(const std::string& found, const std::string& expected) {
  if (found == expected) return true;
  const auto colon = expected.rfind("\": ");
  if (colon == std::string::npos || found.compare(0, colon + 3, expected, 0, colon + 3) != 0) {
    return false;
  }
  const double a = std::strtod(found.c_str() + colon + 3, nullptr);
  const double b = std::strtod(expected.c_str() + colon + 3, nullptr);
  return b != 0 && std::abs(a / b - 1) < 1e-12;
}

// The same text, or the first line that differs.
void expect_same(const fs::path& golden, const std::string& text) {
  if (std::getenv("SYNCLINE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(golden, std::ios::binary) << text;
    return;
  }
  ASSERT_TRUE(fs::exists(golden)) << golden << ": SYNCLINE_UPDATE_GOLDEN=1 writes it";
  std::ifstream in(golden, std::ios::binary);
  std::istringstream now(text);
  std::string expected, found;
  for (int line = 1;; ++line) {
    const bool more_expected = static_cast<bool>(std::getline(in, expected));
    const bool more_found = static_cast<bool>(std::getline(now, found));
    if (!more_expected && !more_found) return;
    ASSERT_TRUE(more_expected) << golden << " ends before line " << line << ": " << found;
    ASSERT_TRUE(more_found) << "the answer ends before line " << line << " of " << golden;
    ASSERT_TRUE(alike(found, expected))
        << golden << ", line " << line << "\n  found    " << found << "\n  expected " << expected;
  }
}

class Golden : public testing::TestWithParam<fs::path> {};

TEST_P(Golden, TheWholeAnswerIsAsKept) {
  const fs::path file = GetParam();
  measure::StudyOptions options;
  options.make_executor = run::make_model_executor;
  measure::Report report = measure::run_study(input::read_document(file.string()), options);
  expect_same(fs::path(file).replace_extension(".txt"), test::table_of(report));
  expect_same(fs::path(file).replace_extension(".report.json"), test::json_of(report));
}

INSTANTIATE_TEST_SUITE_P(Scenarios, Golden, testing::ValuesIn(scenarios_in(kRoot / "tests/golden")),
                         name_of);

class Shipped : public testing::TestWithParam<fs::path> {};

// What `syncline check` does.
TEST_P(Shipped, IsCorrectAtEverySweepPoint) {
  const input::Document document = input::read_document(GetParam().string());
  const Scenario scenario = input::parse_scenario(document);
  for (const auto& point : sweep_points(scenario)) {
    input::Document at = document;
    for (const auto& [path, value] : point) input::set_key(at, path, value);
    EXPECT_NO_THROW(input::parse_scenario(at));
  }
}

INSTANTIATE_TEST_SUITE_P(Ready, Shipped, testing::ValuesIn(scenarios_in(kRoot / "scenarios")),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Published, Shipped,
                         testing::ValuesIn(scenarios_in(kRoot / "scenarios/published")), name_of);
INSTANTIATE_TEST_SUITE_P(Documented, Shipped,
                         testing::ValuesIn(scenarios_in(kRoot / "scenarios/documented")), name_of);

}  // namespace
}  // namespace syncline
