// The stand-ins' arguments, pace and places; the kernels themselves only a GPU can run.

#include "kernels/busy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "kernels/busy_pace.h"

namespace syncline::kernels {
namespace {

TEST(Busy, ThePaceIsTheRate) {
  // 8 blocks at 80 GB/s: 10 bytes a nanosecond each, a piece of 2 x 16384 every 3276.8 ns.
  EXPECT_DOUBLE_EQ(pieces_due(80e9, 8, 0), 1);
  EXPECT_DOUBLE_EQ(pieces_due(80e9, 8, 3276.8), 2);
  EXPECT_DOUBLE_EQ(pieces_due(80e9, 8, 1e6), 1 + 1e7 / 32768);
  EXPECT_DOUBLE_EQ(pieces_due(0, 8, 1e9), 1);
}

// A block with a clock that jumps moves what its share of the rate allows, and never a piece more.
TEST(Busy, ABlockKeepsItsPace) {
  std::int64_t pieces = 0;
  for (double now = 0; now < 1e6; now += 1000) {  // a timer that advances a microsecond at a time
    while (static_cast<double>(pieces) + 1 <= pieces_due(200e9, 10, now)) ++pieces;
    EXPECT_LE(static_cast<double>(pieces - 1) * 32768, 20 * now + 1);
  }
  EXPECT_NEAR(static_cast<double>(pieces) * 32768, 20e6, 2 * 32768);
}

TEST(Busy, BlocksTakeTurnsThroughTheBuffer) {
  const std::int64_t bytes = 7 * 3 * kPieceBytes + 5000;
  std::set<std::int64_t> places;
  for (int block = 0; block < 3; ++block) {
    for (int piece = 0; piece < 7; ++piece) {
      const auto offset = piece_offset(bytes, 3, block, piece);
      EXPECT_LE(offset + kPieceBytes, bytes);
      EXPECT_TRUE(places.insert(offset).second);
      EXPECT_EQ(piece_offset(bytes, 3, block, piece + 7), offset);
    }
  }
  EXPECT_EQ(*places.begin(), 0);
  EXPECT_EQ(places.size(), 21u);
}

TEST(Busy, BadArgumentsAreNamed) {
  const auto has = [](const Status& status, const char* part) {
    EXPECT_NE(status.text.find(part), std::string::npos) << status.text;
  };
  EXPECT_TRUE(check_occupation({4, 640, 1e-3, true}).ok());
  has(check_occupation({-1, 640, 1e-3}), "-1 blocks");
  has(check_occupation({1, 100, 1e-3}), "100 threads");
  has(check_occupation({1, 2048, 1e-3}), "2048 threads");
  has(check_occupation({1, 64, 61}), "[0, 60] seconds");
  has(check_occupation({1, 64, NAN}), "[0, 60] seconds");
  alignas(16) static unsigned char memory[2 * kPieceBytes + 16];
  Traffic good{2, 1e9, 1e-3, memory, 2 * kPieceBytes, nullptr};
  EXPECT_TRUE(check_traffic(good).ok());
  Traffic bad = good;
  bad.buffer = memory + 8;
  has(check_traffic(bad), "not aligned to 16 bytes");
  bad = good;
  bad.buffer_bytes -= 1;
  has(check_traffic(bad), "for each of 2 blocks");
  bad = good;
  bad.bytes_per_second = -1;
  has(check_traffic(bad), "rate");
  bad = good;
  bad.blocks = 0;
  has(check_traffic(bad), "at least one");
}

}  // namespace
}  // namespace syncline::kernels
