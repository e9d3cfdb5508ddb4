// What the fuzzer found worth keeping, read by every build.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/calibrate/log_files.h"
#include "core/error.h"

namespace syncline::calibrate {
namespace {

TEST(NcclLogCorpus, EveryInputIsReadOrRefused) {
  const auto folder = std::filesystem::path(SYNCLINE_SOURCE_DIR) / "tests/fuzz/corpus/nccl_log";
  int read = 0;
  int refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    try {
      for (const cost::MeasuredTable& table : nccl_log_from_text("corpus", text)) {
        EXPECT_FALSE(table.rows.empty());
        EXPECT_GE(table.ranks, 0);
        for (const auto place : {cost::Place::kOutOfPlace, cost::Place::kInPlace}) {
          for (const cost::MeasuredPoint& point : cost::usable_points(table, place)) {
            EXPECT_GT(point.size, 0);
            EXPECT_GT(point.time, 0);
          }
        }
        cost::is_clean(table);
      }
      ++read;
    } catch (const InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(read, 10);
  EXPECT_GT(refused, 5);
}

}  // namespace
}  // namespace syncline::calibrate
