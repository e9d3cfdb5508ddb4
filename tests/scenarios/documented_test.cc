// scenarios/documented: one scenario for each listing of the documents. All of them run, what a
// document prints comes out, and their README says what each comes to.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/executor.h"
#include "formats/input/document.h"
#include "formats/json/text.h"
#include "reports/format.h"
#include "studies/study/study.h"

namespace syncline {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(SYNCLINE_SOURCE_DIR) / "scenarios" / "documented";

std::vector<fs::path> listings() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

measure::Report report_of(const fs::path& file) {
  measure::StudyOptions options;
  options.make_executor = run::make_model_executor;
  return measure::run_study(input::read_document(file.string()), options);
}

std::string outcome_of(const measure::Row& row) {
  std::string text = reports::collectives_text(row.metrics.collectives) + ", " +
                     reports::bytes_text(row.metrics.bytes_on_wire) + " sent";
  if (row.published && row.published->collectives) {
    const bool derived = row.published->note.starts_with("derived");
    text += (derived ? " (derived: " : " (published: ") +
            std::to_string(*row.published->collectives) + ")";
  }
  return text;
}

std::string point_of(const measure::Row& row) {
  std::string text;
  for (const auto& [path, value] : row.sweep) {
    text += (text.empty() ? "" : ", ") + path.substr(path.rfind('.') + 1) + " " + plain_text(value);
  }
  return text;
}

// One strategy's outcomes; neighbouring sweep points that come to the same are told together.
std::string outcomes_of(const measure::Report& report, const std::string& strategy) {
  std::vector<std::pair<std::string, std::string>> parts;  // points, outcome
  for (const auto& row : report.rows) {
    if (row.strategy != strategy) continue;
    const std::string outcome = outcome_of(row);
    if (parts.empty() || parts.back().second != outcome) {
      parts.emplace_back(point_of(row), outcome);
    } else {
      parts.back().first += "; " + point_of(row);
    }
  }
  if (parts.size() == 1) return parts.front().second;
  std::string text;
  for (const auto& [points, outcome] : parts) {
    text += (text.empty() ? "" : "<br>") + points + ": " + outcome;
  }
  return text;
}

std::string table_lines(const fs::path& file, const measure::Report& report,
                        const Scenario& scenario) {
  std::string lines;
  for (const auto& strategy : scenario.strategies) {
    const bool first = &strategy == &scenario.strategies.front();
    lines += first ? "| " + report.scenario + " | [" + file.filename().string() + "](" +
                         file.filename().string() + ") | "
                   : "| | | ";
    lines += strategy.name + " | " + outcomes_of(report, strategy.name) + " |\n";
  }
  return lines;
}

// A document's count is exact or it is wrong.
void expect_published_counts(const measure::Report& report, const fs::path& file) {
  for (const auto& row : report.rows) {
    EXPECT_GT(row.metrics.step_time, 0) << file << ", " << row.strategy;
    if (!row.published || !row.published->collectives) continue;
    EXPECT_EQ(row.metrics.collectives, static_cast<double>(*row.published->collectives))
        << file << ", " << row.strategy << " at " << point_of(row);
  }
}

TEST(DocumentedGolden, EveryListingPrintsWhatItsReadmeSays) {
  const std::string head =
      "| listing | scenario | strategy | what comes out |\n| --- | --- | --- | --- |\n";
  std::string table = head;
  int published = 0;
  for (const auto& file : listings()) {
    SCOPED_TRACE(file.string());
    const Scenario scenario = input::parse_scenario(input::read_document(file.string()));
    EXPECT_FALSE(scenario.about.empty());
    for (const auto& strategy : scenario.strategies) EXPECT_FALSE(strategy.dialect.empty());
    for (const auto& row : scenario.published) published += row.collectives.has_value();
    const measure::Report report = report_of(file);
    expect_published_counts(report, file);
    table += table_lines(file, report, scenario);
  }
  EXPECT_GE(published, 15);

  const fs::path path = kFolder / "README.md";
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  const std::string readme = text.str();
  const auto begin = readme.find(head);
  ASSERT_NE(begin, std::string::npos);
  const auto end = readme.find("\n\n", begin) + 1;
  EXPECT_EQ(readme.substr(begin, end - begin), table);
  if (std::getenv("SYNCLINE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << readme.substr(0, begin) + table + readme.substr(end);
  }
}

// The ramp's stages begin where the documents say, and its switch leaves 52 gradients compressed.
TEST(Documented, DgcStagesBeginAsTheTextSays) {
  const measure::Report report = report_of(kFolder / "paddle_dgc_five_stages.json");
  std::vector<double> sent;
  for (const auto& row : report.rows) {
    if (row.strategy != "as described") continue;
    sent.push_back(row.metrics.bytes_on_wire);
    EXPECT_EQ(row.metrics.collectives, 161);
  }
  ASSERT_EQ(sent.size(), 9U);  // steps 0 19 | 20 39 | 40 59 | 60 79 | 80
  for (const std::size_t stage : {0U, 2U, 4U, 6U}) {
    EXPECT_EQ(sent[stage], sent[stage + 1]) << stage;
    EXPECT_GT(sent[stage], sent[stage + 2]) << stage;
  }
}

TEST(Documented, EachPageHasItsListings) {
  std::size_t paddle = 0, mindspore = 0;
  for (const auto& file : listings()) {
    paddle += file.filename().string().starts_with("paddle_");
    mindspore += file.filename().string().starts_with("mindspore_");
  }
  EXPECT_EQ(paddle, 11U);
  EXPECT_EQ(mindspore, 5U);
}

}  // namespace
}  // namespace syncline
