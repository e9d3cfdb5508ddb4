// What a job's trace gives: three to five sizes of one collective. The cost model must not fail,
// and its interval must hold what the same network took at sizes that it has not seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "studies/calibrate/calibration.h"
#include "studies/calibrate/log_files.h"
#include "studies/calibrate/scale_fit.h"
#include "tests/support/dice.h"
#include "tests/support/nccl_tables.h"

namespace syncline::calibrate {
namespace {

std::vector<cost::MeasuredTable> published() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(test::kNcclLogs)) {
    if (entry.path().extension() == ".txt") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  std::vector<cost::MeasuredTable> tables;
  for (const std::string& file : files) {
    for (cost::MeasuredTable& table : read_nccl_log(file)) {
      if (table.kind && table.ranks > 1 && table.nodes > 0 && cost::is_clean(table)) {
        tables.push_back(std::move(table));
      }
    }
  }
  return tables;
}

// Sizes that lie around the first one, as a job's buckets do.
std::vector<cost::MeasuredPoint> drawn(std::vector<cost::MeasuredPoint> points, std::size_t count,
                                       test::Dice& dice) {
  for (std::size_t i = points.size(); i > 1; --i) {
    std::swap(points[i - 1], points[static_cast<std::size_t>(dice.between(0, int(i) - 1))]);
  }
  std::vector<cost::MeasuredPoint> kept;
  for (const cost::MeasuredPoint& point : points) {
    const bool near = point.size <= 8 * points[0].size && points[0].size <= 8 * point.size;
    if (near && kept.size() < count) kept.push_back(point);
  }
  std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.size < b.size; });
  return kept;
}

struct Coverage {
  double inside = 0;  // between the sizes given: the share of the others that the interval holds
  double beyond = 0;  // below and above them
  int of_inside = 0;
  int of_beyond = 0;
};

// On one node of as many GPUs: the cost model of a table at its own counts does not know what lies
// between.
void add(const cost::MeasuredTable& table, std::size_t count, test::Dice& dice,
         Coverage& coverage) {
  std::vector<cost::MeasuredPoint> points = points_of(table).points;
  std::erase_if(points,
                [](const auto& one) { return one.size < 64 * kKiB || one.size > kGiB / 4; });
  if (points.size() < count + 2) return;
  const auto given = drawn(points, count, dice);
  if (given.size() < count) return;
  cost::MeasuredTable few = table;
  few.gpus_per_node = few.ranks = table.nodes * table.gpus_per_node;
  few.nodes = 1;
  few.rows.clear();
  for (const auto& point : given) few.rows.emplace_back().size = point.size;
  for (std::size_t i = 0; i < given.size(); ++i) few.rows[i].out_of_place = given[i].time;
  const cost::MeasuredCostModel cost_model = calibrate({few}).cost_model;
  constexpr double kEighty = 1.2816;
  double held[2] = {};
  double all[2] = {};
  for (const auto& point : points) {
    const bool used = std::any_of(given.begin(), given.end(),
                                  [&](const auto& one) { return one.size == point.size; });
    if (used) continue;
    const auto answer = cost::cost_model_time(
        cost_model, *few.kind, static_cast<double>(point.size), 1, few.gpus_per_node);
    ASSERT_TRUE(answer);
    const bool beyond = point.size < given.front().size || point.size > given.back().size;
    held[beyond] += std::abs(std::log(point.time / answer->time)) < kEighty * answer->spread;
    ++all[beyond];
  }
  if (all[0] > 0) coverage.inside += held[0] / all[0], ++coverage.of_inside;
  if (all[1] > 0) coverage.beyond += held[1] / all[1], ++coverage.of_beyond;
}

TEST(FewSizes, IntervalsCoverPublishedTablesAsOftenAsPromised) {
  const auto tables = published();
  ASSERT_GT(tables.size(), 40u);
  test::Dice dice(9);
  for (const std::size_t count : {3u, 4u, 5u}) {
    Coverage coverage;
    for (int round = 0; round < 4; ++round) {
      for (const cost::MeasuredTable& table : tables) add(table, count, dice, coverage);
    }
    ASSERT_GT(coverage.of_inside, 100);
    EXPECT_GT(coverage.inside / coverage.of_inside, 0.75) << count;
    EXPECT_GT(coverage.beyond / coverage.of_beyond, 0.75) << count;
  }
}

// From one size on: a whole calibration, of one node and of several, is answered and doubted.
TEST(FewSizes, NoCountOfSizesFails) {
  for (const int nodes : {1, 2, 16}) {
    cost::MeasuredTable table = test::nccl_table(collective::CollectiveKind::kAllReduce, nodes, 2);
    double before = 0;
    for (const Bytes size : {8196000, 31502336, 26255360, 26550272, 9724160}) {
      cost::MeasuredRow& row = table.rows.emplace_back();
      row.size = size;
      row.out_of_place = 50e-6 + static_cast<double>(size) / 20e9;
      const LogCalibration calibration = calibration_of({table}, {}, "job");
      const auto answer = [&](double bytes) {
        return *cost::cost_model_time(calibration.cost_model, *table.kind, bytes, nodes, 2);
      };
      EXPECT_NEAR(answer(8196000).time, 50e-6 + 8196000 / 20e9, 1e-6);
      // A thousandth of the payload: nobody has seen it.
      EXPECT_FALSE(answer(8196).in_range);
      EXPECT_GT(answer(8196).spread, 4 * answer(8196000).spread);
      EXPECT_GT(answer(8196).spread, 0.5);
      before = answer(8196000).spread;
    }
    EXPECT_LT(before, 0.25);
  }
}

}  // namespace
}  // namespace syncline::calibrate
