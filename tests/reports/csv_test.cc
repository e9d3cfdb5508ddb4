#include "reports/run_report.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/reports/small_report.h"
#include "tests/support/printed.h"

namespace syncline::reports {
namespace {

TEST(Csv, Golden) {
  measure::Report report = test::report_of({test::row("momentum", 1, test::at_bandwidth(0.5))});
  EXPECT_EQ(test::csv_of(report),
            "strategy,executor,cluster.inter.bandwidth_gbps,step_time_s,throughput,speedup,"
            "collectives,bytes_on_wire_per_rank,compute_s,communication_s,"
            "exposed_communication_s,handling_s,lower_bound_s\r\n"
            "momentum,model,0.5,0.3725,687.248322147651,1,161,134217728,0.195,0.25,0.1775,0,0.195"
            "\r\n");
}

TEST(Csv, QuotesWhatNeedsQuotes) {
  measure::Report report = test::report_of(
      {test::row("a,b", 1), test::row("say \"c\"", 1), test::row("d\ne", 1)}, "a,b");
  const std::string text = test::csv_of(report);
  EXPECT_NE(text.find("\r\n\"a,b\",model,"), std::string::npos);
  EXPECT_NE(text.find("\r\n\"say \"\"c\"\"\",model,"), std::string::npos);
  EXPECT_NE(text.find("\r\n\"d\ne\",model,"), std::string::npos);
}

TEST(Csv, PublishedColumnsOnlyWhereUsed) {
  EXPECT_EQ(test::csv_of(test::dgc_report()).find("published"), std::string::npos);
  const std::string text = test::csv_of(test::published_report());
  EXPECT_NE(text.find(",lower_bound_s,published_step_time_s,published_accuracy,published_use,"
                      "published_source,published_note,error_percent,left_out_error_percent\r\n"),
            std::string::npos);
  EXPECT_NE(text.find(",0.37,,calibrated,a table,,"), std::string::npos);
  EXPECT_NE(text.find(",0.37,76.5,predicted,a table,batch not given,"), std::string::npos);
  EXPECT_TRUE(text.ends_with(",,,,,,,\r\n"));  // nothing was published for the last row
}

// Line by line the text is the same.
TEST(Csv, RowsThatComeOneByOneAreTheSameText) {
  measure::Report report = test::report_of(
      {test::row("a", 1, test::at_bandwidth(0.5)), test::row("b,c", 2, test::at_bandwidth(0.5)),
       test::row("a", 3, test::at_bandwidth(10))},
      "a");
  for (auto& row : report.rows) {
    row.step = {row.metrics.step_time * 0.9, row.metrics.step_time * 1.1};
    row.gain = {0.5, 1.5};
  }
  std::ostringstream text;
  CsvStream rows(text);
  for (const auto& row : report.rows) rows.put(row);
  EXPECT_EQ(text.str(), test::csv_of(report));
}

TEST(Csv, NoRowsAHeader) {
  EXPECT_TRUE(test::csv_of(test::report_of({})).starts_with("strategy,executor,step_time_s,"));
}

}  // namespace
}  // namespace syncline::reports
