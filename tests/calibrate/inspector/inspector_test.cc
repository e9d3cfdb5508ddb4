#include "studies/calibrate/inspector/inspector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/statistics.h"
#include "studies/calibrate/calibration.h"
#include "studies/calibrate/log_files.h"
#include "tests/support/corpus.h"
#include "tests/support/dice.h"
#include "tests/support/expect.h"
#include "tests/support/packed.h"
#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::calibrate {
namespace {

struct Line {
  std::string id = "0xabc";
  int rank = 0;
  int ranks = 4;
  int nodes = 2;
  std::string coll = "AllReduce";
  int number = 1;
  long bytes = 1 << 20;
  int microseconds = 100;
  std::string source = "kernel_gpu";

  std::string text() const {
    const nlohmann::json json = {
        {"header", {{"id", id}, {"rank", rank}, {"n_ranks", ranks}, {"nnodes", nodes}}},
        {"metadata", {{"inspector_output_format_version", "v4.0"}, {"hostname", "alpha"}}},
        {"coll_perf",
         {{"coll", coll},
          {"coll_sn", number},
          {"coll_msg_size_bytes", bytes},
          {"coll_exec_time_us", microseconds},
          {"coll_timing_source", source},
          {"coll_algobw_gbs", 1.5},
          {"coll_busbw_gbs", 2.25}}}};
    return json.dump() + "\n";
  }
};

std::vector<cost::MeasuredTable> tables_of(const std::string& text) {
  return inspector_tables("x", {{"x", text}});
}

std::string refusal(const std::string& text) {
  return test::input_error([&] { (void)tables_of(text); });
}

using test::any_contains;

// All ranks of one collective, of which one came last.
std::string collective(Line line, test::Dice& dice, int least) {
  const int last = dice.between(0, line.ranks - 1);
  std::string text;
  for (line.rank = 0; line.rank < line.ranks; ++line.rank) {
    line.microseconds = least + (line.rank == last ? 0 : dice.between(0, 5000));
    text += line.text();
  }
  return text;
}

TEST(Inspector, TheMinimumOfTheRanksIsUsed) {
  Line line;
  std::string text;
  for (const int time : {500, 130, 700, 900}) {
    line.microseconds = time;
    text += line.text();
    ++line.rank;
  }
  const auto tables = tables_of(text);
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].test, "all_reduce");
  EXPECT_EQ(tables[0].kind, collective::CollectiveKind::kAllReduce);
  EXPECT_EQ(tables[0].ranks, 4);
  EXPECT_EQ(tables[0].nodes, 2);
  EXPECT_EQ(tables[0].gpus_per_node, 2);
  ASSERT_EQ(tables[0].rows.size(), 1u);
  EXPECT_EQ(tables[0].rows[0].size, 1 << 20);
  EXPECT_NEAR(*tables[0].rows[0].out_of_place, 130e-6, 1e-12);
  EXPECT_TRUE(tables[0].left_out.empty());
}

// The example of the plugin's own page: 41057 us, 2 GiB a rank, algbw 418.4 GB/s on 8 ranks.
TEST(Inspector, SharesAreCountedAsTheirWhole) {
  test::Dice dice(1);
  for (const char* name : {"ReduceScatter", "AllGather"}) {
    Line line;
    line.ranks = 8;
    line.nodes = 1;
    line.coll = name;
    line.bytes = 2147483648;
    const auto tables = tables_of(collective(line, dice, 41057));
    EXPECT_EQ(tables.at(0).rows.at(0).size, 8 * 2147483648);
    EXPECT_NEAR(static_cast<double>(tables[0].rows[0].size) / 41057e-6 / 1e9, 418.439467, 1e-3);
  }
}

// NCCL counts each kind of collective by itself: the same number is not the same collective.
TEST(Inspector, NumbersCountWithinAKind) {
  test::Dice dice(2);
  Line line;
  std::string text = collective(line, dice, 100);
  line.coll = "Broadcast";
  line.bytes = 4096;
  text += collective(line, dice, 30);
  const auto tables = tables_of(text);
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_TRUE(tables[0].left_out.empty());
  EXPECT_NEAR(*tables[0].rows[0].out_of_place, 100e-6, 1e-12);
  EXPECT_NEAR(*tables[1].rows[0].out_of_place, 30e-6, 1e-12);
}

// Files a rank, lines in any order, several communicators: as many tables as there are shapes, with
// the median of what was drawn.
TEST(Inspector, RandomJobsGiveTheirMedians) {
  test::Dice dice(3);
  for (int round = 0; round < 50; ++round) {
    const int ranks = 2 * dice.between(1, 4);
    const int nodes = dice.chance(50) ? 1 : 2;
    std::map<Bytes, std::vector<double>> truth;
    std::vector<std::string> lines;
    for (int number = 0; number < dice.between(1, 60); ++number) {
      Line line;
      line.id = dice.chance(50) ? "0x1" : "0x2";
      line.ranks = ranks;
      line.nodes = nodes;
      line.number = number;
      line.bytes = dice.pick<long>({8192, 65536, 1 << 20, 26214400});
      const int least = dice.between(20, 9000);
      truth[line.bytes].push_back(least * 1e-6);
      const int last = dice.between(0, ranks - 1);
      for (line.rank = 0; line.rank < ranks; ++line.rank) {
        line.microseconds = least + (line.rank == last ? 0 : dice.between(0, 500));
        lines.push_back(line.text());
      }
    }
    std::shuffle(lines.begin(), lines.end(), std::mt19937(static_cast<unsigned>(round)));
    std::vector<std::pair<std::string, std::string>> files(3);
    for (const std::string& line : lines) {
      files[static_cast<std::size_t>(dice.between(0, 2))].second += line;
    }
    const auto tables = inspector_tables("job", files);
    ASSERT_EQ(tables.size(), 1u);
    EXPECT_EQ(tables[0].gpus_per_node, ranks / nodes);
    ASSERT_EQ(tables[0].rows.size(), truth.size());
    for (const cost::MeasuredRow& row : tables[0].rows) {
      EXPECT_NEAR(*row.out_of_place, median(truth[row.size]), 1e-12) << round;
      EXPECT_EQ(row.spread > 0, truth[row.size].size() >= 3) << round;
    }
  }
}

// The spread that a row carries is that of the median: of drawn medians around the true one.
TEST(Inspector, TheSpreadIsThatOfTheMedian) {
  test::Dice dice(4);
  constexpr int kRepeats = 25;
  std::vector<double> off;
  std::vector<double> told;
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < kRepeats; ++i) {
      Line line;
      line.number = i;
      double normal = -6;
      for (int k = 0; k < 12; ++k) normal += dice.between(0, 1000000) * 1e-6;
      text += collective(line, dice, static_cast<int>(std::lround(1e5 * std::exp(0.2 * normal))));
    }
    const cost::MeasuredRow row = tables_of(text).at(0).rows.at(0);
    off.push_back(std::log(*row.out_of_place / 0.1));
    told.push_back(row.spread);
  }
  double squares = 0;
  for (const double one : off) squares += one * one / static_cast<double>(off.size());
  EXPECT_NEAR(median(told) / std::sqrt(squares), 1, 0.15);
}

TEST(Inspector, DroppedEntriesAreReported) {
  test::Dice dice(5);
  Line line;
  std::string text = collective(line, dice, 100);
  line.number = 2;
  std::string partial = collective(line, dice, 100);
  text += partial.substr(0, partial.find('\n') + 1);
  line.number = 3;
  line.source = "collective_cpu";
  text += collective(line, dice, 100);
  line.source = "kernel_gpu";
  line.number = 4;
  line.microseconds = 0;
  text += line.text();
  line.number = 5;
  const std::string twice = collective(line, dice, 70);
  text += twice + twice;
  line.number = 6;
  line.microseconds = 9;
  text += line.text();
  line.rank = 1;
  line.bytes = 12;
  text += line.text();
  text += R"({"header": {"id": "0xabc", "rank": 1, "n_ranks": 4, "nnodes": 2},
"dump_stats": {"coll_dropped_total": 17}})";
  std::replace(text.end() - 60, text.end(), '\n', ' ');
  text += "\n";
  text += R"({"header": {"id": "0xabc", "rank": 1, "n_ranks": 4, "nnodes": 2}, "p2p_perf": {}})";
  const auto tables = tables_of(text);
  ASSERT_EQ(tables.size(), 1u);
  const auto& list = tables[0].left_out;
  EXPECT_TRUE(any_contains(list, "(all_reduce of 4 ranks) that not all ranks reported, at most 1"));
  EXPECT_TRUE(any_contains(list, "4 lines whose time the host took (collective_cpu)"));
  EXPECT_TRUE(any_contains(list, "1 line without time or bytes"));
  EXPECT_TRUE(any_contains(list, "4 lines tell the same collective of the same rank again"));
  EXPECT_TRUE(any_contains(list, "1 collective for which ranks report different sizes"));
  EXPECT_TRUE(any_contains(list, "up to 17 collectives of a rank that the Inspector itself lost"));
  EXPECT_EQ(list.size(), 6u);
}

TEST(Inspector, WrongLinesAreOneLineWithFileAndNumber) {
  test::Dice dice(6);
  const std::string good = collective(Line(), dice, 100);
  EXPECT_EQ(refusal(good + good.substr(0, 90)), "x: line 5: cut off, or no valid JSON");
  EXPECT_EQ(refusal(good + "what we did\n"), "x: line 5: expected an object of NCCL's Inspector");
  EXPECT_EQ(refusal("\n" + good + R"({"header": {"id": "a", "n_ranks": 4}, "coll_perf": {}})"),
            "x: line 6: expected the key header.rank, as NCCL's Inspector writes it");
  Line line;
  line.rank = 4;
  EXPECT_EQ(refusal(line.text()),
            "x: line 1: header.rank: expected a whole number from 0 to 3, found 4");
  line.rank = 3;
  line.bytes = -1;
  EXPECT_NE(refusal(line.text()).find("coll_perf.coll_msg_size_bytes: expected a whole number"),
            std::string::npos);
  line.bytes = 1;
  EXPECT_TRUE(refusal(line.text()).starts_with("x: no collective that NCCL's Inspector timed"));
  EXPECT_NE(refusal(line.text()).find("give the folder with the files of all ranks"),
            std::string::npos);
}

TEST(Inspector, ReadsFoldersAndPackedFilesNextToLogs) {
  const test::Scratch scratch;
  test::Dice dice(7);
  const std::string folder = scratch.path("dump");
  std::filesystem::create_directory(folder);
  std::vector<std::string> ranks(4);
  for (int number = 0; number < 40; ++number) {
    Line line;
    line.number = number;
    line.bytes = 1L << (16 + number % 8);
    const int least = 20 + static_cast<int>(line.bytes / 10000);
    for (line.rank = 0; line.rank < 4; ++line.rank) {
      line.microseconds = least + (line.rank == 2 ? 0 : dice.between(0, 300));
      ranks[static_cast<std::size_t>(line.rank)] += line.text();
    }
  }
  for (int rank = 0; rank < 4; ++rank) {
    const std::string name = folder + "/alpha-pid" + std::to_string(rank) + ".log";
    const std::string& text = ranks[static_cast<std::size_t>(rank)];
    rank % 2 == 0 ? test::write_text(name, text) : test::write_packed(name + ".gz", text);
  }
  test::write_text(folder + "/notes.txt", "not the Inspector's");
  const auto tables = read_tables({folder});
  ASSERT_EQ(tables.size(), 1u);
  EXPECT_EQ(tables[0].rows.size(), 8u);
  EXPECT_EQ(tables[0].source, folder);
  const LogCalibration calibration = calibration_of(tables, {}, "job");
  EXPECT_LT(calibration.in_sample, 0.05);
  EXPECT_TRUE(calibration.fitted.at(0).clean);
  EXPECT_EQ(read_tables({folder + "@2x2"}).at(0).nodes, 2);
  EXPECT_THROW(read_tables({folder + "@4x4"}), InputError);

  const std::string packed = test::text_of(folder + "/alpha-pid1.log.gz");
  test::write_text(folder + "/alpha-pid1.log.gz", packed.substr(0, packed.size() / 2));
  const std::string error = test::input_error([&] { read_tables({folder}); });
  EXPECT_TRUE(error.starts_with(folder + "/alpha-pid1.log.gz: ")) << error;
  const std::string empty = scratch.path("empty");
  std::filesystem::create_directory(empty);
  EXPECT_THROW(read_tables({empty}), InputError);
}

TEST(Inspector, EveryInputOfTheCorpusIsReadOrRefused) {
  const auto replayed = test::replay_corpus("inspector", [](const std::string& text) {
    for (const auto& table : tables_of(text)) EXPECT_FALSE(table.rows.empty());
  });
  EXPECT_GE(replayed.read, 5);
  EXPECT_GE(replayed.refused, 4);
}

// Any bytes are tables or an error, never worse.
TEST(Inspector, RandomDamageIsReadOrRefused) {
  test::Dice dice(8);
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string text = collective(Line(), dice, 100);
    for (int flips = dice.between(0, 3); flips > 0; --flips) {
      text[static_cast<std::size_t>(dice.between(0, static_cast<int>(text.size()) - 1))] =
          static_cast<char>(dice.between(0, 255));
    }
    try {
      for (const auto& table : tables_of(text)) {
        EXPECT_GT(cost::usable_points(table, cost::Place::kOutOfPlace).size(), 0u);
      }
      ++read;
    } catch (const InputError& error) {
      // dump() writes what is no text as it is: still one line.
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(read, 500);
}

}  // namespace
}  // namespace syncline::calibrate
