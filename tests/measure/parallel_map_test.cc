// Rows that are evaluated in other processes are the rows that are evaluated here, to the last byte
// of every report.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "reports/run_report.h"
#include "tests/support/printed.h"
#include "tests/support/studies.h"

namespace syncline::measure {
namespace {

StudyOptions options_with(int jobs) {
  StudyOptions options = test::study_options();
  if (jobs > 1) options.parallel_map = run::over_processes(jobs);
  return options;
}

input::Document streams() {
  return input::read_document(SYNCLINE_SOURCE_DIR "/scenarios/overlap_streams.json");
}

std::string everything(const Report& report) {
  return test::table_of(report) + test::csv_of(report) + test::json_of(report);
}

// Published figures, a calibration with held-out rows, a sweep, a baseline: whatever a row may
// carry.
TEST(ParallelMap, ReportsAreTheSame) {
  for (const std::string name : {"published/dgc_fasterrcnn", "overlap_streams", "frameworks"}) {
    const input::Document document =
        input::read_document(SYNCLINE_SOURCE_DIR "/scenarios/" + name + ".json");
    const Report here = run_study(document, options_with(1));
    EXPECT_EQ(everything(run_study(document, options_with(3))), everything(here)) << name;
  }
}

TEST(ParallelMap, TracedPlansStayHere) {
  const input::Document document = streams();
  StudyOptions one = options_with(1);
  StudyOptions three = options_with(3);
  one.trace = three.trace = true;
  const Report here = run_study(document, one);
  const Report spread = run_study(document, three);
  EXPECT_EQ(everything(spread), everything(here));
  ASSERT_EQ(spread.traced.size(), here.traced.size());
  EXPECT_EQ(spread.traced.back().timeline.spans.size(), here.traced.back().timeline.spans.size());
}

TEST(ParallelMap, ProgressCountsTheSameRows) {
  const input::Document document = streams();
  std::size_t last = 0;
  std::size_t all = 0;
  StudyOptions options = options_with(3);
  options.trace = true;
  options.progress = [&](std::size_t done, std::size_t wanted) {
    EXPECT_EQ(done, last + 1);
    last = done;
    all = wanted;
  };
  const Report report = run_study(document, options);
  EXPECT_EQ(last, report.rows.size());
  EXPECT_EQ(all, report.rows.size());
}

TEST(ParallelMap, InterruptedIsIncomplete) {
  const input::Document document = streams();
  const Report whole = run_study(document, options_with(1));
  std::size_t rows = 0;
  StudyOptions options = options_with(2);
  options.progress = [&](std::size_t done, std::size_t) { rows = done; };
  options.interrupted = [&] { return rows >= 2; };
  const Report report = run_study(document, options);
  EXPECT_FALSE(report.complete);
  EXPECT_LT(report.rows.size(), whole.rows.size());
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    EXPECT_EQ(report.rows[i].strategy, whole.rows[i].strategy);
    EXPECT_EQ(report.rows[i].metrics.step_time, whole.rows[i].metrics.step_time);
  }
}

TEST(RowBytes, AnyCutBeforeTheNameIsAnError) {
  Row row;
  row.executor = "model";
  row.speedup = 1.0 / 3;
  row.buckets = {{3, 0.1}, {7, 2.5}};
  const std::string bytes = row_bytes(row);
  const Row back = row_from_bytes(bytes);
  EXPECT_EQ(back.executor, "model");
  EXPECT_EQ(back.speedup, 1.0 / 3);
  EXPECT_EQ(back.buckets, row.buckets);
  for (std::size_t size = 0; size + 5 < bytes.size(); ++size) {
    EXPECT_THROW(row_from_bytes(bytes.substr(0, size)), MachineError) << size;
  }
}

}  // namespace
}  // namespace syncline::measure
