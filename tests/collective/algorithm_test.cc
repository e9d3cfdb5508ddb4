// Every algorithm x kind x world x payload: the rounds give the exact result, waste nothing, are
// what the stages fold, and cost what the formula says.
#include "core/algorithm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>

#include "core/base/internal_error.h"
#include "core/collective/collective.h"
#include "tests/support/apply_schedule.h"

namespace syncline::collective {
namespace {

using test::apply_schedule;
using test::broken_rule;
using Payloads = test::Payloads<std::int32_t>;
using Kind = CollectiveKind;

constexpr std::int32_t kPoison = -1'000'000;  // stands where a member holds nothing of use

std::vector<int> worlds() {
  std::vector<int> worlds(17);
  std::iota(worlds.begin(), worlds.end(), 1);
  worlds.insert(worlds.end(), {32, 33, 64});
  return worlds;
}

const std::int64_t kPayloads[] = {0, 1, 2, 13, 101, 64 * 1024 + 7, 300'001};  // the last: 3 chunks

// Small, positive, and different enough that a shifted range or a swapped member shows.
std::int32_t value(std::size_t member, std::size_t element) {
  const auto mixed = static_cast<std::uint32_t>(member * 40503 + element) * 2654435761U;
  return static_cast<std::int32_t>(mixed >> 22) + 1;
}

bool owns(Kind kind, int ranks, std::int64_t elements, std::size_t member, std::size_t element) {
  if (kind == Kind::kBroadcast) return member == 0;
  if (kind != Kind::kAllGather) return true;
  const auto index = static_cast<std::int64_t>(element);
  const Range shard = part_of(elements, ranks, static_cast<std::int64_t>(member));
  return shard.begin <= index && index < shard.end;
}

Payloads input(Kind kind, int ranks, std::int64_t elements) {
  Payloads payloads(static_cast<std::size_t>(ranks));
  for (std::size_t m = 0; m < payloads.size(); ++m) {
    payloads[m].resize(static_cast<std::size_t>(elements));
    for (std::size_t e = 0; e < payloads[m].size(); ++e) {
      payloads[m][e] = owns(kind, ranks, elements, m, e) ? value(m, e) : kPoison;
    }
  }
  return payloads;
}

// Compares with the definitions in schedule.h, nothing else: in what range a member must be right,
// and the sum of all that is not poison, which is the whole sum, the one owner or the root.
std::string wrong_result(Kind kind, const Payloads& before, const Payloads& after) {
  const auto ranks = static_cast<std::int64_t>(before.size());
  const auto elements = static_cast<std::int64_t>(before[0].size());
  std::vector<std::int32_t> expected(before[0].size(), 0);
  for (const auto& payload : before) {
    for (std::size_t e = 0; e < payload.size(); ++e) {
      if (payload[e] != kPoison) expected[e] += payload[e];
    }
  }
  for (std::size_t m = 0; m < after.size(); ++m) {
    Range matters = {0, elements};
    if (kind == Kind::kReduceScatter) {
      matters = part_of(elements, ranks, static_cast<std::int64_t>(m));
    }
    if (kind == Kind::kReduce && m > 0) matters = {0, 0};
    for (auto e = static_cast<std::size_t>(matters.begin);
         e < static_cast<std::size_t>(matters.end); ++e) {
      if (after[m][e] == expected[e]) continue;
      return "member " + std::to_string(m) + ", element " + std::to_string(e) + ": " +
             std::to_string(after[m][e]) + " instead of " + std::to_string(expected[e]);
    }
  }
  return "";
}

// The edges that are busy in a stage.
EdgeSet busy_edges(const EdgeSets& sets, const Stage& stage) {
  EdgeSet edges;
  for (std::size_t s = stage.first; s < stage.last; ++s) {
    edges.insert(edges.end(), sets[s].begin(), sets[s].end());
  }
  return edges;
}

// The share of the payload through the busiest port in one round of a stage.
double busiest_port(const EdgeSet& edges, double fraction, int ranks) {
  std::vector<double> sent(static_cast<std::size_t>(ranks));
  std::vector<double> received(static_cast<std::size_t>(ranks));
  for (const Edge& edge : edges) {
    sent[static_cast<std::size_t>(edge.from)] += fraction;
    received[static_cast<std::size_t>(edge.to)] += fraction;
  }
  return std::max(*std::ranges::max_element(sent), *std::ranges::max_element(received));
}

Cost counted_cost(const EdgeSets& sets, const Stages& stages, int ranks) {
  Cost cost;
  for (const Stage& stage : stages) {
    const auto repeat = static_cast<double>(stage.repeat);
    cost.steps += repeat;
    cost.volume += repeat * busiest_port(busy_edges(sets, stage), stage.fraction, ranks);
  }
  return cost;
}

using Ends = std::pair<int, int>;

// How a stage differs from the round that it stands for; empty if it does not.
std::string difference(const EdgeSet& busy, double share, const Round& round,
                       std::int64_t elements) {
  if (!(share > 0 && share <= 1)) return "no proper fraction";
  std::map<Ends, std::pair<double, int>> carried;  // elements, in pieces
  for (const Transfer& transfer : round) {
    auto& [size, pieces] = carried[{transfer.from, transfer.to}];
    size += static_cast<double>(transfer.elements.size());
    ++pieces;
  }
  std::map<Ends, std::pair<double, int>> told;  // share of the payload, on edges
  for (const Edge& edge : busy) {
    auto& [fraction, edges] = told[{edge.from, edge.to}];
    fraction += share;
    ++edges;
  }
  const auto name = [](const Ends& link) {
    return std::to_string(link.first) + "->" + std::to_string(link.second);
  };
  for (const auto& [link, what] : told) {
    const auto& [fraction, edges] = what;
    const auto& [size, pieces] = carried[link];
    // Messages beside each other stay apart, as they share a link apart (empty ones are not sent).
    if (pieces > edges) return name(link) + " is told too few times";
    // Each piece is off by its rounding: two cuts of a half that is itself half an element off.
    const double error = fraction * static_cast<double>(elements) - size;
    if (std::abs(error) > 1.5 * edges + 1e-6) {
      return name(link) + " is off by " + std::to_string(error) + " elements";
    }
  }
  for (const auto& [link, what] : carried) {
    if (!told.contains(link)) return name(link) + " is not told";
  }
  return "";
}

std::int64_t total_elements(const Schedule& schedule) {
  std::int64_t total = 0;
  for (const Round& round : schedule) {
    for (const Transfer& transfer : round) total += transfer.elements.size();
  }
  return total;
}

std::string label(const Algorithm& algorithm, Kind kind, int ranks, std::int64_t elements) {
  return std::string(algorithm.name) + " " + std::string(to_string(kind)) + ", " +
         std::to_string(ranks) + " ranks, " + std::to_string(elements) + " elements";
}

class EveryAlgorithm : public testing::TestWithParam<std::tuple<std::string, Kind>> {
 protected:
  const Algorithm& algorithm() const { return *find_algorithm(std::get<0>(GetParam())); }
  Kind kind() const { return std::get<1>(GetParam()); }

  // Calls check(ranks, elements) wherever the algorithm fits.
  template <typename Check>
  void for_each_case(Check check) const {
    for (const int ranks : worlds()) {
      if (!algorithm().fits(kind(), ranks)) continue;
      for (const std::int64_t elements : kPayloads) {
        SCOPED_TRACE(label(algorithm(), kind(), ranks, elements));
        check(ranks, elements);
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Matrix, EveryAlgorithm,
                         testing::Combine(testing::Values("ring", "to_one", "double_binary_tree",
                                                          "halving_doubling", "all_to_all"),
                                          testing::ValuesIn(kAllCollectiveKinds)),
                         [](const auto& row) {
                           return std::get<0>(row.param) + "_" +
                                  std::string(to_string(std::get<1>(row.param)));
                         });

TEST_P(EveryAlgorithm, GivesTheExactResultByTheRules) {
  for_each_case([&](int ranks, std::int64_t elements) {
    const Schedule rounds = algorithm().rounds(kind(), ranks, elements);
    ASSERT_EQ(broken_rule(rounds, ranks, elements), "");
    const Payloads before = input(kind(), ranks, elements);
    EXPECT_EQ(wrong_result(kind(), before, apply_schedule(rounds, before)), "");
  });
}

// Every kind has the same least total: each element must leave N-1 members once to be summed, and
// reach N-1 members once to be spread.
TEST_P(EveryAlgorithm, SendsNoByteTwice) {
  for_each_case([&](int ranks, std::int64_t elements) {
    const std::int64_t ways = kind() == Kind::kAllReduce ? 2 : 1;
    EXPECT_EQ(total_elements(algorithm().rounds(kind(), ranks, elements)),
              ways * (ranks - 1) * elements);
  });
}

// Also shows that the check of the results sees the loss of any single transfer.
TEST_P(EveryAlgorithm, NeedsEveryTransfer) {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    if (!algorithm().fits(kind(), ranks)) continue;
    const std::int64_t elements = 13;
    const Payloads before = input(kind(), ranks, elements);
    const Schedule whole = algorithm().rounds(kind(), ranks, elements);
    for (std::size_t r = 0; r < whole.size(); ++r) {
      for (std::size_t t = 0; t < whole[r].size(); ++t) {
        Schedule lacking = whole;
        lacking[r].erase(lacking[r].begin() + static_cast<std::ptrdiff_t>(t));
        EXPECT_NE(wrong_result(kind(), before, apply_schedule(lacking, before)), "")
            << label(algorithm(), kind(), ranks, elements) << " without transfer " << t
            << " of round " << r;
      }
    }
  }
}

TEST_P(EveryAlgorithm, StagesAreTheRoundsFolded) {
  for_each_case([&](int ranks, std::int64_t elements) {
    const Schedule rounds = algorithm().rounds(kind(), ranks, elements);
    std::size_t r = 0;
    const EdgeSets sets = algorithm().edges(kind(), ranks);
    for (const Stage& stage : algorithm().stages(kind(), ranks, elements)) {
      ASSERT_GE(stage.repeat, 1);
      ASSERT_LT(stage.first, stage.last);
      ASSERT_LE(stage.last, sets.size());
      const EdgeSet busy = busy_edges(sets, stage);
      ASSERT_FALSE(busy.empty());
      for (std::int64_t i = 0; i < stage.repeat; ++i, ++r) {
        ASSERT_LT(r, rounds.size());
        ASSERT_EQ(difference(busy, stage.fraction, rounds[r], elements), "") << "round " << r;
      }
    }
    EXPECT_EQ(r, rounds.size());
  });
}

TEST_P(EveryAlgorithm, StagesDependOnThePayloadByItsChunksOnly) {
  for (const int ranks : {2, 3, 8, 13}) {
    if (!algorithm().fits(kind(), ranks)) continue;
    const auto told = [&](std::int64_t elements) {
      std::vector<std::tuple<std::size_t, std::size_t, double, std::int64_t>> stages;
      for (const Stage& stage : algorithm().stages(kind(), ranks, elements)) {
        stages.emplace_back(stage.first, stage.last, stage.fraction, stage.repeat);
      }
      return stages;
    };
    std::map<std::int64_t, decltype(told(0))> by_chunks;
    for (const std::int64_t elements :
         {std::int64_t{0}, std::int64_t{77}, kChunkElements, kChunkElements + 1, 2 * kChunkElements,
          5 * kChunkElements - 1, 5 * kChunkElements, 200 * kChunkElements, 300 * kChunkElements}) {
      const auto stages = told(elements);
      const auto chunks = algorithm().chunks(kind(), ranks, elements);
      const auto [first, fresh] = by_chunks.try_emplace(chunks, stages);
      EXPECT_TRUE(fresh || first->second == stages)
          << label(algorithm(), kind(), ranks, elements) << ", " << chunks << " chunks";
    }
  }
}

// How far the formula may be from the counted volume, below and above it.
std::pair<double, double> tolerance(const Algorithm& algorithm, Kind kind, int ranks,
                                    std::int64_t chunks) {
  if (algorithm.name != "double_binary_tree" || ranks <= 2) return {0, 0};
  const double half_chunk = 0.5 / static_cast<double>(chunks);
  if (kind != Kind::kAllReduce) return {0, half_chunk};
  const int levels = static_cast<int>(std::bit_width(static_cast<unsigned>(ranks))) - 1;
  if (ranks == 3 || chunks == 1 || chunks >= std::max(3, 2 * levels - 1)) {
    return {0, 0};
  }
  return {std::max(1.0, levels / 2.0) * half_chunk, half_chunk};
}

TEST_P(EveryAlgorithm, CostsTheBusiestPortOfEveryRound) {
  std::vector<int> many(130);
  std::iota(many.begin(), many.end(), 1);
  many.insert(many.end(), {191, 192, 255, 256, 257, 384, 511, 512, 513, 700, 1000, 1023, 1024});
  for (const int ranks : many) {
    if (!algorithm().fits(kind(), ranks)) continue;
    const EdgeSets sets = algorithm().edges(kind(), ranks);
    for (const std::int64_t chunks : {1, 2, 3, 4, 5, 7, 9, 12, 16, 19, 128}) {
      const std::int64_t elements = chunks * kChunkElements;
      const Cost counted = counted_cost(sets, algorithm().stages(kind(), ranks, elements), ranks);
      const Cost told = algorithm().cost(kind(), ranks, elements);
      const auto [below, above] = tolerance(algorithm(), kind(), ranks, chunks);
      const double rounding = 1e-10 * (1 + counted.volume);
      const auto where = label(algorithm(), kind(), ranks, elements);
      EXPECT_EQ(told.steps, counted.steps) << where;
      EXPECT_GE(told.volume, counted.volume - below - rounding) << where;
      EXPECT_LE(told.volume, counted.volume + above + rounding) << where;
      if (algorithm().chunks(kind(), ranks, elements) == 1 && ranks > 1) break;  // all alike
    }
  }
}

TEST_P(EveryAlgorithm, DoesNothingOnOneRank) {
  ASSERT_TRUE(algorithm().fits(kind(), 1));
  EXPECT_FALSE(algorithm().fits(kind(), 0));
  EXPECT_FALSE(algorithm().fits(kind(), -4));
  EXPECT_TRUE(algorithm().rounds(kind(), 1, 300'001).empty());
  EXPECT_TRUE(algorithm().edges(kind(), 1).empty());
  EXPECT_TRUE(algorithm().stages(kind(), 1, 300'001).empty());
  EXPECT_EQ(algorithm().cost(kind(), 1, 300'001).steps, 0);
  EXPECT_EQ(algorithm().cost(kind(), 1, 300'001).volume, 0);
  EXPECT_EQ(algorithm().chunks(kind(), 1, 300'001), 1);
}

TEST(AlgorithmTable, IsLookedUpByName) {
  ASSERT_EQ(algorithms().size(), 4U);
  for (const Algorithm& row : algorithms()) {
    EXPECT_EQ(find_algorithm(row.name), &row);
    EXPECT_FALSE(row.summary.empty());
  }
  for (const char* none : {"rings", "rin", "Ring", ""}) EXPECT_EQ(find_algorithm(none), nullptr);
  EXPECT_EQ(find_algorithm("all_to_all"), all_to_all());
  EXPECT_EQ(algorithm_names(),
            (std::vector<std::string>{"ring", "to_one", "double_binary_tree", "halving_doubling"}));
}

TEST(AlgorithmTable, FitsWhatItSays) {
  const auto fits = [](std::string_view name, Kind kind, int ranks) {
    return find_algorithm(name)->fits(kind, ranks);
  };
  for (int ranks = 2; ranks <= 70; ++ranks) {
    const bool power = std::has_single_bit(static_cast<unsigned>(ranks));
    for (const Kind kind : kAllCollectiveKinds) {
      const bool shards = kind == Kind::kReduceScatter || kind == Kind::kAllGather;
      EXPECT_TRUE(fits("ring", kind, ranks));
      EXPECT_EQ(fits("to_one", kind, ranks), !shards);
      EXPECT_EQ(fits("double_binary_tree", kind, ranks), !shards);
      EXPECT_EQ(fits("halving_doubling", kind, ranks),
                kind == Kind::kAllReduce || (shards && power));
    }
  }
  EXPECT_TRUE(fits("ring", Kind::kAllReduce, 100'000));
  EXPECT_TRUE(fits("ring", Kind::kReduce, 1024));
  EXPECT_FALSE(fits("ring", Kind::kReduce, 1025));
  EXPECT_FALSE(fits("ring", Kind::kBroadcast, 1025));
}

TEST(Schedule, PartsCoverThePayloadAndDifferByAtMostOne) {
  for (const std::int64_t elements : {0, 1, 2, 13, 101, 65'543}) {
    for (const std::int64_t parts : {1, 2, 3, 7, 64}) {
      std::int64_t end = 0;
      for (std::int64_t i = 0; i < parts; ++i) {
        const Range part = part_of(elements, parts, i);
        EXPECT_EQ(part.begin, end);
        EXPECT_GE(part.size(), elements / parts);
        EXPECT_LE(part.size(), elements / parts + 1);
        end = part.end;
      }
      EXPECT_EQ(end, elements);
    }
  }
  EXPECT_EQ(part_of(10, 4, 1), (Range{2, 5}));
}

TEST(Schedule, ChunksAreFullUntilThereAreTooMany) {
  EXPECT_EQ(pipeline_chunks(0), 1);
  EXPECT_EQ(pipeline_chunks(1), 1);
  EXPECT_EQ(pipeline_chunks(kChunkElements), 1);
  EXPECT_EQ(pipeline_chunks(kChunkElements + 1), 2);
  EXPECT_EQ(pipeline_chunks(300'001), 3);
  EXPECT_EQ(pipeline_chunks(kChunkElements * kMaxChunks), kMaxChunks);
  EXPECT_EQ(pipeline_chunks(std::int64_t{1} << 62), kMaxChunks);
}

TEST(Schedule, KindsHaveNames) {
  std::set<std::string_view> names;
  for (const Kind kind : kAllCollectiveKinds) names.insert(to_string(kind));
  EXPECT_EQ(names, (std::set<std::string_view>{"all_gather", "all_reduce", "broadcast", "reduce",
                                               "reduce_scatter"}));
}

// Where a rank stands among the groups of a collective.
TEST(Groups, FindARanksPlace) {
  EXPECT_EQ(find_place(world_group(4), 2)->member, 2);
  EXPECT_EQ(find_place(block_groups(4, 2), 3)->group, 1);
  EXPECT_EQ(find_place(block_groups(4, 2), 3)->member, 1);
  EXPECT_FALSE(find_place(leader_group(4, 2), 3).has_value());
  EXPECT_EQ(find_place(leader_group(4, 2), 2)->member, 1);
  EXPECT_EQ(find_place(shard_groups(4, 2), 3)->group, 1);
}

TEST(Ring, SendsTwiceAllButOneShardPerRankAndOnlyToTheNext) {
  for (const int ranks : {2, 3, 5, 8, 16}) {
    const std::int64_t elements = 240 * ranks;
    const Schedule rounds = find_algorithm("ring")->rounds(Kind::kAllReduce, ranks, elements);
    EXPECT_EQ(rounds.size(), static_cast<std::size_t>(2 * (ranks - 1)));
    std::vector<std::int64_t> sent(static_cast<std::size_t>(ranks));
    for (const Round& round : rounds) {
      for (const Transfer& transfer : round) {
        EXPECT_EQ(transfer.to, (transfer.from + 1) % ranks);
        sent[static_cast<std::size_t>(transfer.from)] += transfer.elements.size();
      }
    }
    for (const std::int64_t one : sent) EXPECT_EQ(one, 2 * (ranks - 1) * elements / ranks);
  }
}

TEST(Ring, IsTheSameSizeForAnyNumberOfRanks) {
  const Stages stages = find_algorithm("ring")->stages(Kind::kAllReduce, 8192, 1'000'000);
  ASSERT_EQ(stages.size(), 1U);
  EXPECT_EQ(stages[0].repeat, 2 * 8191);
}

// Figures worked out by hand.
TEST(Costs, AreTheTextbooks) {
  const auto expect = [](std::string_view name, Kind kind, int ranks, std::int64_t chunks,
                         double steps, double volume) {
    const Cost cost = find_algorithm(name)->cost(kind, ranks, chunks * kChunkElements);
    EXPECT_EQ(cost.steps, steps) << name << " " << to_string(kind) << " " << ranks;
    EXPECT_DOUBLE_EQ(cost.volume, volume) << name << " " << to_string(kind) << " " << ranks;
  };
  expect("ring", Kind::kAllReduce, 4, 1, 6, 1.5);
  expect("ring", Kind::kAllGather, 4, 1, 3, 0.75);
  expect("ring", Kind::kBroadcast, 5, 8, 11, 11.0 / 8);
  expect("to_one", Kind::kAllReduce, 5, 1, 2, 8);
  expect("to_one", Kind::kReduce, 5, 1, 1, 4);
  expect("halving_doubling", Kind::kAllReduce, 8, 1, 6, 1.75);
  expect("halving_doubling", Kind::kReduceScatter, 8, 1, 3, 0.875);
  expect("halving_doubling", Kind::kAllReduce, 11, 1, 8, 3.75);
  expect("all_to_all", Kind::kReduceScatter, 8, 1, 1, 0.875);
  expect("all_to_all", Kind::kAllReduce, 5, 1, 2, 1.6);
  expect("double_binary_tree", Kind::kAllReduce, 2, 1, 2, 1);     // one exchange of halves, twice
  expect("double_binary_tree", Kind::kAllReduce, 7, 1, 4, 4);     // two halves in, each of 4 rounds
  expect("double_binary_tree", Kind::kReduce, 8, 4, 6, 6.0 / 4);  // trees of 7 below member 0
  expect("double_binary_tree", Kind::kAllReduce, 1024, 128, 128 + 19, (2.0 * 138 - 3) / 128);
}

// A message costs a latency and its bytes: between two ranks nothing is passed on, so that no
// payload pays for more than a way there and, of an all-reduce, back.
TEST(Costs, OneHopTakesItsLatencyOnce) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const Kind kind : {Kind::kAllReduce, Kind::kReduceScatter, Kind::kAllGather, Kind::kReduce,
                            Kind::kBroadcast}) {
      if (!algorithm.fits(kind, 2)) continue;
      for (const std::int64_t chunks : {1, 2, 8, 128, 1000}) {
        const double messages = kind == Kind::kAllReduce ? 2 : 1;
        EXPECT_EQ(algorithm.cost(kind, 2, chunks * kChunkElements).steps, messages)
            << label(algorithm, kind, 2, chunks * kChunkElements);
      }
    }
  }
}

// Sanders, Speck and Traff's point: in each tree's half of the payload, who sums for others in one
// half never does so in the other; and two halves must be on their way.
TEST(DoubleBinaryTree, HasNoRankWithChildrenInBothTrees) {
  for (int ranks = 2; ranks <= 130; ++ranks) {
    const std::int64_t elements = 1000;
    const auto rounds =
        find_algorithm("double_binary_tree")->rounds(Kind::kAllReduce, ranks, elements);
    std::set<int> inner[2];
    for (const Round& round : rounds) {
      for (const Transfer& transfer : round) {
        const std::size_t half = transfer.elements.begin < elements / 2 ? 0 : 1;
        ASSERT_TRUE(half == 1 || transfer.elements.end <= elements / 2);
        if (transfer.add) inner[half].insert(transfer.to);
      }
    }
    EXPECT_EQ(inner[0].size(), static_cast<std::size_t>(ranks / 2)) << ranks;
    EXPECT_EQ(inner[1].size(), static_cast<std::size_t>(ranks / 2)) << ranks;
    for (const int rank : inner[0]) EXPECT_FALSE(inner[1].contains(rank)) << ranks << ": " << rank;
  }
}

TEST(HalvingDoubling, SendsTheLargestMessagesToNeighbours) {
  const auto rounds = find_algorithm("halving_doubling")->rounds(Kind::kAllReduce, 8, 800);
  ASSERT_EQ(rounds.size(), 6U);
  const std::int64_t sizes[] = {400, 200, 100, 100, 200, 400};
  const int distances[] = {1, 2, 4, 4, 2, 1};
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    ASSERT_EQ(rounds[r].size(), 8U);
    for (const Transfer& transfer : rounds[r]) {
      EXPECT_EQ(transfer.elements.size(), sizes[r]);
      EXPECT_EQ(transfer.from ^ transfer.to, distances[r]);
    }
  }
}

// The rules themselves: each of these must be refused.
TEST(Rules, AreSeenWhenBroken) {
  const auto broken = [](Round round) { return !broken_rule({round}, 3, 10).empty(); };
  EXPECT_FALSE(broken({{0, 1, {0, 10}, false}, {1, 0, {0, 10}, true}, {2, 0, {5, 6}, true}}));
  EXPECT_FALSE(broken({{0, 1, {0, 5}, false}, {2, 1, {5, 10}, true}}));
  EXPECT_TRUE(broken({{0, 1, {0, 6}, false}, {2, 1, {5, 10}, false}}));
  EXPECT_TRUE(broken({{0, 1, {0, 6}, true}, {2, 1, {5, 10}, false}}));
  EXPECT_TRUE(broken({{0, 1, {5, 10}, true}, {2, 1, {0, 6}, false}}));
  EXPECT_TRUE(broken({{0, 1, {0, 9}, false}, {2, 1, {1, 2}, true}, {2, 1, {3, 4}, true}}));
  EXPECT_TRUE(broken({{1, 1, {0, 1}, true}}));
  EXPECT_TRUE(broken({{0, 3, {0, 1}, true}}));
  EXPECT_TRUE(broken({{-1, 0, {0, 1}, true}}));
  EXPECT_TRUE(broken({{0, 1, {0, 11}, true}}));
  EXPECT_TRUE(broken({{0, 1, {-1, 1}, true}}));
  EXPECT_TRUE(broken({{0, 1, {4, 4}, true}}));
}

TEST(Rules, TransfersReadValuesFromBeforeTheRound) {
  const Schedule swap = {{{0, 1, {0, 1}, false}, {1, 0, {0, 1}, false}}};
  EXPECT_EQ(apply_schedule(swap, Payloads{{1}, {2}}), (Payloads{{2}, {1}}));
}

// A table of two rows of one name would answer with the first.
TEST(Algorithms, AreRefusedIfNamesRepeat) {
  EXPECT_THROW(hand_in(ring_algorithm()), InternalError);
}

}  // namespace
}  // namespace syncline::collective
