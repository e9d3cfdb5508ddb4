#include "reports/answer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/explain_report.h"
#include "reports/run_report.h"
#include "tests/reports/small_report.h"
#include "tests/reports/traced_plan.h"
#include "tests/support/expect.h"

namespace syncline::reports {
namespace {

const std::string kHostile = "</script></main><script>alert(1)</script>\"'&<!-- \x01\xff ]]>";

measure::Report hostile_report() {
  measure::Report report = test::traced_report({kHostile}, {0}, 3);
  report.baseline = report.scenario = report.about = report.workload = report.cluster = kHostile;
  report.sources = {kHostile};
  report.warnings = {kHostile};
  report.rows = {test::row(kHostile, 1, {{kHostile, Json(kHostile)}}),
                 test::row("other", 2, {{kHostile, Json(kHostile)}})};
  report.traced_workload.tensors[1].name = kHostile;
  return report;
}

std::string page_of_report(const measure::Report& report) {
  return html_page(answer_of(report), "1.2.3");
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

Json data_of(const std::string& page) {
  const std::string begin = "<script type=\"application/json\" class=\"data\">";
  const std::size_t at = page.find(begin) + begin.size();
  return Json::parse(page.substr(at, page.find("</script>", at) - at));
}

TEST(HtmlPage, NamesOfOthersEndNothing) {
  const std::string page = page_of_report(hostile_report());
  // The data and the page's own script.
  EXPECT_EQ(count(page, "<script"), 2U);
  EXPECT_EQ(count(page, "</script"), 2U);
  EXPECT_EQ(count(page, "<main>"), 1U);
  EXPECT_EQ(count(page, "</main>"), 1U);
  EXPECT_EQ(count(page, "<!--"), 0U);
  EXPECT_TRUE(test::lacks(page, std::string(1, '\x01'), "\xff"));
}

TEST(HtmlPage, LoadsNothing) {
  const std::string page = page_of_report(hostile_report());
  EXPECT_TRUE(test::says(page, "default-src 'none'"));
  EXPECT_TRUE(test::lacks(page, " src=", "<link", "@import", "url(", "fetch(", "XMLHttpRequest"));
}

TEST(HtmlPage, CarriesTheAnswersJson) {
  const auto report = test::dgc_report();
  const Answer answer = answer_of(report);
  EXPECT_EQ(data_of(html_page(answer, "1.2.3")),
            Json::parse(format_answer(answer, Format::kJson, "1.2.3")));
}

TEST(HtmlPage, EveryIdIsGivenOnceAndEveryLinkLeadsToOne) {
  const std::string page = page_of_report(hostile_report());
  std::set<std::string> ids;
  for (std::size_t at = page.find(" id=\""); at != std::string::npos;
       at = page.find(" id=\"", at + 1)) {
    const std::string id = page.substr(at + 5, page.find('"', at + 5) - at - 5);
    EXPECT_TRUE(ids.insert(id).second) << id;
  }
  std::size_t links = 0;
  for (std::size_t at = page.find("href=\"#"); at != std::string::npos;
       at = page.find("href=\"#", at + 1), ++links) {
    EXPECT_TRUE(ids.contains(page.substr(at + 7, page.find('"', at + 7) - at - 7)));
  }
  EXPECT_GT(links, 0U);
}

TEST(HtmlPage, TheWinnersLineIsMarked) {
  const std::string page = page_of_report(test::dgc_report());
  EXPECT_EQ(count(page, "<td>\xe2\x98\x85 dgc</td>"), 2U);  // at 10 and at 1
  EXPECT_EQ(count(page, "<td>\xe2\x98\x85 momentum</td>"), 1U);
  EXPECT_EQ(count(page, "class=\"best\"><td"), 3U);
}

TEST(HtmlPage, ExplanationsBeginWithAVerdict) {
  measure::Explanation explanation;
  explanation.scenario.name = "a job";
  explanation.strategies.resize(2);
  for (std::size_t i = 0; i < 2; ++i) {
    auto& one = explanation.strategies[i];
    one.strategy.name = i == 0 ? "slow" : "fast";
    one.evaluated.metrics.step_time = i == 0 ? 0.3 : 0.2;
    one.interval = {0.19, 0.24};
    one.bottleneck.emplace();
    one.bottleneck->step = 0.2;
    one.bottleneck->compute = 0.1;
    one.bottleneck->transfer = 0.1;
    one.advised = true;
  }
  measure::Advice advice;
  advice.change = "bucket_cap_mb: 25 -> 80";
  advice.speedup = 1 / (1 - 0.1234);
  advice.training = measure::TrainingChange::kRounded;
  explanation.strategies[1].advice = {advice};
  const std::string verdict =
      "'fast' is the fastest of 2 strategies: 200 ms per step (80 %: 190 to 240 ms), bound by "
      "bandwidth. The best change makes it 12.3 % shorter: bucket_cap_mb: 25 -> 80; rounds "
      "gradients.";
  EXPECT_EQ(lead_of(answer_of(explanation)), (std::vector<std::string>{verdict}));
  measure::Advice same = advice;
  same.training = measure::TrainingChange::kSame;
  same.speedup = 1 / (1 - 0.03);
  explanation.strategies[1].advice.push_back(same);
  EXPECT_TRUE(test::says(lead_of(answer_of(explanation)).front(),
                         "The best change with the same training makes it 3.0 % shorter: bucket"));
  const std::string page = html_page(answer_of(explanation), "1.2.3");
  EXPECT_EQ(count(page, "is the fastest of 2 strategies"), 1U);
  EXPECT_LT(page.find("is the fastest"), page.find("<figure"));
}

TEST(HtmlPage, StaysUnderTwoMegabytesAndSaysWhatIsMissing) {
  measure::Report report = test::report_of({}, "strategy 0");
  for (int point = 0; point < 50; ++point) {
    for (int strategy = 0; strategy < 200; ++strategy) {
      report.rows.push_back(test::row("strategy " + std::to_string(strategy),
                                      1 + 0.001 * strategy + 0.0123 * point,
                                      test::at_bandwidth(1 + point)));
    }
  }
  const std::string page = page_of_report(report);
  EXPECT_LT(page.size(), 2'000'000U);
  EXPECT_TRUE(test::says(page, "The first 400 of 10,000 lines") ||
              test::says(page, "The first 400 of 10000 lines"));
  const Json data = data_of(page);
  EXPECT_EQ(data["rows"].size() + data["left_out"]["rows"].get<std::size_t>(), 10000U);
  EXPECT_TRUE(test::says(page, "Drawn are 24 of 200"));
}

}  // namespace
}  // namespace syncline::reports
