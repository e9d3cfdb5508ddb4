// The host executor is the truth for values and bytes: every strategy ends with the same sum on
// every rank, and sends what the metrics say.
#include "core/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "core/compress/dgc.h"
#include "core/metrics.h"
#include "tests/plan/planned.h"
#include "tests/support/live_cases.h"

namespace syncline::run {
namespace {

using test::cluster_of;
using test::sparse_tensor_of;
using test::tensor_of;
using Values = std::vector<float>;

const int kWorlds[] = {1, 2, 3, 4, 5, 6, 8, 12, 16};

// A few tensors of awkward sizes, in two dtypes, some in layers that lie apart.
Workload awkward() {
  Workload workload;
  workload.tensors = {tensor_of("a.w", {7}),     tensor_of("b.w", {1}),
                      tensor_of("a.b", {13, 3}), tensor_of("c.w", {64}, DType::kFp16),
                      tensor_of("c.b", {5}),     tensor_of("d", {101}, DType::kFp64)};
  return workload;
}

const Tensor& tensor_at(const Workload& workload, std::size_t index) {
  const std::size_t gradients = workload.tensors.size();
  return index < gradients ? workload.tensors[index] : workload.buffers[index - gradients];
}

// Small integers: their sums are exact in any order. A sparse gradient has non-zero rows, at most
// as many as it announces.
Gradients random_gradients(const Workload& workload, int ranks, unsigned seed) {
  std::mt19937 random(seed);
  const auto small = [&] { return static_cast<float>(static_cast<int>(random() % 19) - 9); };
  Gradients gradients(static_cast<std::size_t>(ranks));
  for (auto& rank : gradients) {
    for (std::size_t t = 0; t < workload.tensors.size() + workload.buffers.size(); ++t) {
      const Tensor& tensor = tensor_at(workload, t);
      Values values(static_cast<std::size_t>(tensor.elements), 0.0F);
      if (!tensor.sparse) {
        for (auto& value : values) value = small();
      } else {
        const auto width = static_cast<std::size_t>(tensor.elements / tensor.shape[0]);
        for (std::int64_t r = 0; r < tensor.sparse_rows; ++r) {
          const std::size_t row = random() % static_cast<std::size_t>(tensor.shape[0]);
          for (std::size_t i = 0; i < width; ++i) values[row * width + i] = small();
        }
      }
      rank.push_back(std::move(values));
    }
  }
  return gradients;
}

std::vector<Values> sum_of(const Gradients& gradients) {
  std::vector<Values> sum = gradients[0];
  for (std::size_t rank = 1; rank < gradients.size(); ++rank) {
    for (std::size_t t = 0; t < sum.size(); ++t) {
      for (std::size_t i = 0; i < sum[t].size(); ++i) sum[t][i] += gradients[rank][t][i];
    }
  }
  return sum;
}

// Each value made another one.
template <typename Change>
std::vector<Values> changed(std::vector<Values> gradients, Change change) {
  for (auto& values : gradients) std::ranges::transform(values, values.begin(), change);
  return gradients;
}
std::vector<Values> mean_of(const Gradients& gradients) {
  const auto ranks = static_cast<float>(gradients.size());
  return changed(sum_of(gradients), [&](float value) { return value / ranks; });
}

void expect_everywhere(const Gradients& found, const std::vector<Values>& expected,
                       const std::string& what) {
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    ASSERT_EQ(found[rank], expected) << what << ", rank " << rank;
  }
}

Outcome run(const Workload& workload, const Cluster& cluster, const Strategy& strategy,
            const Gradients& input, int periods = 1) {
  const plan::Plan plan = plan::make_plan(workload, cluster, strategy);
  return make_host_executor(workload)->run(plan, input, periods);
}

Gradients sums(const Workload& workload, int ranks, const Strategy& strategy,
               const Gradients& input) {
  return run(workload, cluster_of(ranks, 1), strategy, input).gradients;
}

void expect_near_everywhere(const Gradients& found, const std::vector<Values>& expected,
                            const std::string& what) {
  for (const auto& rank : found) {
    for (std::size_t t = 0; t < expected.size(); ++t) {
      for (std::size_t i = 0; i < expected[t].size(); ++i) {
        ASSERT_NEAR(rank[t][i], expected[t][i], 1e-4) << what << " " << t;
      }
    }
  }
}

Fusion fusion_of(Fusion::Rule rule) { return plan::strategy_with(rule).fusion; }

std::vector<Fusion> all_fusions() {
  std::vector<Fusion> fusions(8);
  fusions[1].rule = Fusion::Rule::kLayer;
  fusions[2].rule = Fusion::Rule::kSize;
  fusions[2].size = 60;
  fusions[3] = fusions[2];
  fusions[3].close = Fusion::Close::kBefore;
  fusions[3].align = 32;
  fusions[4].rule = Fusion::Rule::kCount;
  fusions[4].count = 2;
  fusions[4].by_layer = true;
  fusions[5].rule = Fusion::Rule::kIndex;
  fusions[5].ends = {1, 4};
  fusions[6].rule = Fusion::Rule::kOne;
  fusions[7].rule = Fusion::Rule::kOne;
  fusions[7].align = 256;
  return fusions;
}

// All ways over `ranks`: flat, and each form with each divisor as the size of a group.
std::vector<Hierarchy> all_hierarchies(int ranks) {
  std::vector<Hierarchy> list(1);
  for (int size = 1; size <= ranks; ++size) {
    if (ranks % size != 0) continue;
    Hierarchy hierarchy;
    hierarchy.group_size = size;
    hierarchy.form = Hierarchy::Form::kSharded;
    list.push_back(hierarchy);
    hierarchy.form = Hierarchy::Form::kLeaders;
    list.push_back(hierarchy);
    hierarchy.first_all_reduce = true;
    list.push_back(hierarchy);
  }
  return list;
}

template <typename Visit>
void for_all_ways(int ranks, Visit visit) {
  for (const auto& algorithm : collective::algorithms()) {
    for (const auto& hierarchy : all_hierarchies(ranks)) {
      Strategy strategy;
      strategy.algorithm = std::string(algorithm.name);
      strategy.hierarchy = hierarchy;
      if (!test::fits(strategy, ranks)) continue;
      visit(strategy, strategy.algorithm + ", form " +
                          std::to_string(static_cast<int>(hierarchy.form)) + " of " +
                          std::to_string(hierarchy.group_size) + " in " + std::to_string(ranks));
    }
  }
}

// The sum, or the mean, on every rank of every world by every way, each changed
// by `change`. Returns how many there were.
int expect_sums(const Workload& workload, unsigned seed,
                const std::function<void(Strategy&)>& change, const std::vector<Fusion>& fusions,
                bool mean = false) {
  int combinations = 0;
  for (const int ranks : kWorlds) {
    const Gradients input = random_gradients(workload, ranks, seed);
    const auto expected = mean ? mean_of(input) : sum_of(input);
    for_all_ways(ranks, [&](Strategy strategy, const std::string& what) {
      change(strategy);
      for (std::size_t f = 0; f < fusions.size(); ++f) {
        strategy.fusion = fusions[f];
        expect_everywhere(sums(workload, ranks, strategy, input), expected,
                          what + ", fusion " + std::to_string(f));
        ++combinations;
      }
    });
  }
  return combinations;
}

TEST(HostExecutor, EveryStrategyEndsWithTheSum) {
  const auto same = [](Strategy&) {};
  EXPECT_GT(expect_sums(awkward(), 1, same, all_fusions()), 1000);
}

TEST(HostExecutor, DifferentAlgorithmsInsideAndAcross) {
  const Workload workload = awkward();
  const Gradients input = random_gradients(workload, 12, 2);
  for (const char* inside : {"ring", "to_one", "double_binary_tree"}) {
    for (const auto& across : collective::algorithms()) {
      Strategy strategy = plan::in_blocks(Hierarchy::Form::kLeaders, 4);
      strategy.fusion.rule = Fusion::Rule::kOne;
      strategy.hierarchy.inside = inside;
      strategy.hierarchy.across = std::string(across.name);
      expect_everywhere(run(workload, cluster_of(3, 4), strategy, input).gradients, sum_of(input),
                        inside);
    }
  }
}

// Large enough for pipelined algorithms to cut the payload into chunks.
TEST(HostExecutor, PipelinedPayloads) {
  Workload workload;
  workload.tensors = {tensor_of("large", {3 * collective::kChunkElements + 17})};
  const Gradients input = random_gradients(workload, 5, 3);
  for_all_ways(5, [&](const Strategy& strategy, const std::string& what) {
    expect_everywhere(sums(workload, 5, strategy, input), sum_of(input), what);
  });
}

TEST(HostExecutor, SparseRowsAreSummed) {
  Workload workload = awkward();
  workload.tensors.insert(workload.tensors.begin() + 2, sparse_tensor_of("embedding", {50, 3}, 8));
  workload.tensors.push_back(sparse_tensor_of("vector", {40}, 5));
  workload.tensors.push_back(sparse_tensor_of("untouched", {40, 2}, 0));
  expect_sums(workload, 4, [](Strategy&) {}, {fusion_of(Fusion::Rule::kOne)});
}

Strategy dgc(double sparsity, std::int64_t min_elements) {
  Strategy strategy = plan::dgc_strategy(min_elements);
  strategy.fusion.rule = Fusion::Rule::kOne;
  strategy.compression.sparsity = {sparsity};
  return strategy;
}

TEST(HostExecutor, DgcThatKeepsEverythingIsTheDenseSum) {
  const auto change = [](Strategy& strategy) { strategy.compression = dgc(0, 1).compression; };
  expect_sums(awkward(), 5, change, {Fusion{}});
}

// Keeps the `kept` largest magnitudes by sorting, the lower index first among equals.
Values only_largest(const Values& values, std::size_t kept) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater{},
                           [&](std::size_t place) { return std::fabs(values[place]); });
  Values rest(values.size(), 0.0F);
  for (std::size_t i = 0; i < kept; ++i) rest[order[i]] = values[order[i]];
  return rest;
}

TEST(HostExecutor, DgcSumsEachRanksLargest) {
  Workload workload = awkward();
  workload.tensors.push_back(tensor_of("large", {2000}));
  for (const int ranks : {2, 3, 4, 8, 12}) {
    for (const double sparsity : {0.75, 0.9375, 0.999}) {
      const Gradients input = random_gradients(workload, ranks, 6);
      Gradients selected = input;
      for (auto& rank : selected) {
        for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
          const Tensor& tensor = workload.tensors[t];
          if (tensor.elements < 30 || tensor.dtype != DType::kFp32) continue;
          const auto kept = compress::kept_elements(tensor.elements, sparsity);
          rank[t] = only_largest(rank[t], static_cast<std::size_t>(kept));
        }
      }
      expect_everywhere(sums(workload, ranks, dgc(sparsity, 30), input), sum_of(selected), "dgc");
    }
  }
}

// Small integers are exact in half precision, so nothing is lost.
TEST(HostExecutor, HalfPrecisionKeepsSmallIntegers) {
  const auto change = [](Strategy& strategy) { strategy.compression.codec = "fp16"; };
  expect_sums(awkward(), 7, change, all_fusions());
}

// Ranks' gradients that are multiples of one matrix of rank 1 are summed exactly, but for rounding,
// whatever the path of their factors; vectors beside them travel whole.
TEST(HostExecutor, PowerSgdSumsMatricesOfItsRank) {
  std::mt19937 random(12);
  std::normal_distribution<float> normal;
  for (const int ranks : {2, 3, 4, 8}) {
    Workload workload;
    workload.tensors = {tensor_of("a.b", {11}), tensor_of("a.w", {11, 17}), tensor_of("b.b", {9}),
                        tensor_of("b.w", {9, 5, 3})};
    Gradients input(static_cast<std::size_t>(ranks));
    for (const Tensor& tensor : workload.tensors) {
      const auto rows = static_cast<std::size_t>(tensor.shape.front());
      const std::size_t columns = static_cast<std::size_t>(tensor.elements) / rows;
      Values left(rows);
      Values right(columns);
      for (float& value : left) value = normal(random);
      for (float& value : right) value = normal(random);
      for (auto& rank : input) {
        const float own = normal(random);
        Values values;
        for (const float l : left) {
          for (const float r : right) values.push_back(own * l * r);
        }
        rank.push_back(std::move(values));
      }
    }
    const auto expected = sum_of(input);
    for_all_ways(ranks, [&](Strategy strategy, const std::string& what) {
      strategy.compression.codec = "powersgd";
      for (const std::int64_t rank : {1, 2}) {
        strategy.compression.rank = rank;
        for (const auto rule : {Fusion::Rule::kOne, Fusion::Rule::kLayer, Fusion::Rule::kNone}) {
          strategy.fusion.rule = rule;
          expect_near_everywhere(sums(workload, ranks, strategy, input), expected, what);
        }
      }
    });
  }
}

TEST(HostExecutor, LocalSgdTakesTheMeanOfParametersAndStatistics) {
  Workload workload = awkward();
  workload.tensors.push_back(sparse_tensor_of("embedding", {50, 3}, 8));
  workload.buffers = {tensor_of("mean", {9}), tensor_of("variance", {9})};
  // An embedding's parameters are dense, whatever its gradient is.
  const auto change = [](Strategy& strategy) {
    strategy.local_sgd = plan::local_strategy(3).local_sgd;
  };
  expect_sums(workload, 8, change, {fusion_of(Fusion::Rule::kLayer)}, true);
}

// The hook of post-local SGD averages parameters alone: DDP broadcasts the statistics.
TEST(HostExecutor, PostLocalSgdKeepsStatistics) {
  Workload workload;
  workload.tensors = {tensor_of("b", {6}), tensor_of("a", {5, 2})};
  workload.buffers = {tensor_of("mean", {3})};
  Strategy strategy = plan::local_strategy(2);
  strategy.local_sgd.warmup_gradients = true;
  const int ranks = 4;
  const Gradients input = random_gradients(workload, ranks, 8);
  const auto found = sums(workload, ranks, strategy, input);
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    auto expected = mean_of(input);
    expected[2] = input[rank][2];
    EXPECT_EQ(found[rank], expected);
  }
}

// By the formulas, in double, over three periods. Halves and quarters are exact in float.
TEST(HostExecutor, OuterStepsFollowTheirFormulas) {
  Workload workload;
  workload.tensors = {tensor_of("c", {6}), tensor_of("b", {5, 2}), tensor_of("a", {7})};
  const int ranks = 4;
  const Gradients input = random_gradients(workload, ranks, 8);
  for (const auto optimizer : {Outer::Optimizer::kSgd, Outer::Optimizer::kNesterov}) {
    for (const int fragments : {1, 3}) {
      for (const int delay : {0, 1}) {
        for (const double mix : {0.0, 0.25}) {
          Strategy strategy = plan::local_strategy(6);
          strategy.local_sgd.fragments = fragments;
          strategy.local_sgd.delay = delay;
          strategy.local_sgd.outer = {optimizer, 0.5, 0.25, mix};
          const auto found = run(workload, cluster_of(ranks, 1), strategy, input, 3).gradients;
          const auto sum = sum_of(input);
          const double momentum = optimizer == Outer::Optimizer::kNesterov ? 0.25 : 0;
          for (std::size_t t = 0; t < sum.size(); ++t) {
            for (std::size_t i = 0; i < sum[t].size(); ++i) {
              double start = 0, kept = 0;
              for (int period = 0; period < 3; ++period) {
                const double gradient = start - sum[t][i] / ranks;
                kept = momentum * kept + gradient;
                start -= 0.5 * (gradient + momentum * kept);
              }
              for (std::size_t r = 0; r < found.size(); ++r) {
                EXPECT_EQ(found[r][t][i], mix * input[r][t][i] + (1 - mix) * start);
              }
            }
          }
        }
      }
    }
  }
}

// Each rank of a group carries its part across, and the group puts it together again.
TEST(HostExecutor, OuterStepsAcrossGroups) {
  Workload workload;
  workload.tensors = {tensor_of("b", {5, 2}), tensor_of("a", {7})};
  Strategy strategy = plan::local_strategy(2);
  strategy.local_sgd.subgroup = 4;
  strategy.local_sgd.outer = {Outer::Optimizer::kSgd, 1, 0, 0};
  Gradients input = random_gradients(workload, 8, 3);
  for (std::size_t r = 0; r < 8; ++r) input[r] = input[r / 4 * 4];  // a group's are alike
  expect_everywhere(run(workload, cluster_of(2, 4), strategy, input).gradients,
                    mean_of({input[0], input[4]}), "groups");
}

// Blocks with scales: every rank ends with the same, within what so many roundings lose, and sends
// what the codec says.
TEST(HostExecutor, BlocksAreSummedWithNewScales) {
  Workload workload;
  workload.tensors = {tensor_of("b", {300}), tensor_of("a", {41})};
  for (const auto& [codec, error] :
       {std::pair{"int8", 0.01}, {"int4", 0.2}, {"fp8", 0.08}, {"fp8_e5m2", 0.16}}) {
    for (const int ranks : {2, 3, 4}) {
      const Strategy strategy = plan::compressing(codec, Fusion::Rule::kOne);
      const Gradients input = random_gradients(workload, ranks, 8);
      const Outcome outcome = run(workload, cluster_of(ranks, 1), strategy, input);
      const auto sum = sum_of(input);
      expect_everywhere(outcome.gradients, outcome.gradients[0], codec);
      double most = 0;
      for (std::size_t t = 0; t < sum.size(); ++t) {
        for (std::size_t i = 0; i < sum[t].size(); ++i) {
          most = std::max(most, std::fabs(static_cast<double>(outcome.gradients[0][t][i]) -
                                          static_cast<double>(sum[t][i])));
        }
      }
      EXPECT_LE(most, error * 9 * ranks * ranks) << codec;
      EXPECT_GT(most, 0) << codec;
      const Bytes unit = std::string(codec) == "int4" ? 68 : 132;  // three blocks of 128
      if (ranks == 3) {
        EXPECT_EQ(outcome.bytes_sent[0], 4 * unit);
      }
    }
  }
}

// Whatever the ranks, an element is rounded twice: as each rank sends it, and as the rank that sums
// its part in fp32 gives the sum back.
TEST(HostExecutor, BlocksAreRoundedTwice) {
  Workload workload;
  workload.tensors = {tensor_of("b", {900}), tensor_of("a", {41})};
  const auto rounded = [](const compress::Codec& codec, Values row) {
    return codec.encode(row, 0).values;
  };
  const auto joined = [](const std::vector<Values>& gradients) {
    Values row(gradients[0]);
    row.insert(row.end(), gradients[1].begin(), gradients[1].end());
    return row;
  };
  for (const char* name : {"int8", "int4", "fp8", "fp8_e5m2"}) {
    for (const auto& [nodes, gpus] : {std::pair{2, 1}, {5, 1}, {2, 3}}) {
      const int ranks = nodes * gpus;
      Strategy strategy = plan::compressing(name, Fusion::Rule::kOne);
      strategy.algorithm = "all_to_all";
      const compress::Codec& codec = *compress::find_codec(name);
      const Gradients input = random_gradients(workload, ranks, 8);
      const auto outcome = run(workload, cluster_of(nodes, gpus), strategy, input);
      // The rank of a part begins with its own.
      const std::int64_t blocks = 8;
      std::vector<Values> sent;
      for (const auto& own : input) sent.push_back(rounded(codec, joined(own)));
      Values sum(sent[0].size());
      for (int owner = 0; owner < ranks; ++owner) {
        const auto part = collective::part_of(blocks, ranks, owner);
        const auto end = std::min(static_cast<std::int64_t>(sum.size()), part.end * 128);
        for (std::int64_t i = part.begin * 128; i < end; ++i) {
          const std::size_t e = index(i);
          sum[e] = sent[index(owner)][e];
          for (int r = 0; r < ranks; ++r) {
            if (r != owner) sum[e] += sent[index(r)][e];
          }
        }
      }
      const auto wanted = rounded(codec, sum);
      for (const auto& found : outcome.gradients) {
        EXPECT_EQ(joined(found), wanted) << name << " on " << ranks;
      }
    }
  }
}

// Parameters that a step gathers for the passes of the model leave the gradients' sums alone, in
// whichever order it gathers and scatters.
TEST(HostExecutor, GatheringForThePassesChangesNoSum) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    Workload workload;
    for (int t = 0; t < 6; ++t) {
      workload.tensors.push_back(tensor_of("l" + std::to_string(t) + ".w", {24 * (t + 1)}));
    }
    const Gradients input = random_gradients(workload, ranks, 5);
    const auto expected = sum_of(input);
    for (const bool apart : {false, true}) {
      for (const std::int64_t live : {0, 1, 100, 1000}) {
        Strategy strategy = plan::regathering();
        strategy.traits.fetches = {live, 50, 100};
        strategy.traits.regather_group = live == 100 && ranks % 2 == 0 ? 2 : 0;
        strategy.fusion.rule = Fusion::Rule::kCount;
        strategy.fusion.count = 2;
        if (apart) {
          strategy.gather_groups = {{0}, {5}, {3, 4}, {1, 2}};
          strategy.traits.kept_groups = 1;
        }
        expect_everywhere(
            sums(workload, ranks, strategy, input), expected,
            std::to_string(ranks) + (apart ? " apart, " : ", ") + std::to_string(live));
      }
    }
  }
}

// Shards in groups, replicas across, a second copy in other groups: every rank ends with the sum.
TEST(HostExecutor, ReplicasOfShardsEndWithTheSum) {
  const Workload workload = awkward();
  for (const int ranks : {4, 6, 8, 12}) {
    const Gradients input = random_gradients(workload, ranks, 7);
    const auto expected = sum_of(input);
    for (int group = 1; group <= ranks; ++group) {
      if (ranks % group != 0) continue;
      for (const bool across_stream : {false, true}) {
        Strategy strategy = plan::in_blocks(Hierarchy::Form::kSharded, group);
        strategy.exchange = Strategy::Exchange::kSharded;
        strategy.cross_step = strategy.regather = across_stream;
        strategy.traits.regather_group = across_stream ? ranks / group : 0;
        strategy.traits.across_stream = across_stream;
        expect_everywhere(sums(workload, ranks, strategy, input), expected,
                          std::to_string(ranks) + " in groups of " + std::to_string(group));
      }
    }
  }
}

// A bucket as one square matrix: of a rank that its factors have, it comes back as it is.
TEST(HostExecutor, BatchedPowerSgdFactorsWholeBuckets) {
  std::mt19937 random(12);
  std::normal_distribution<float> normal;
  for (const int ranks : {1, 2, 3, 5}) {
    Workload workload;
    workload.tensors = {tensor_of("b", {20}), tensor_of("a", {5, 5}), tensor_of("c", {16})};
    Strategy strategy = plan::compressing("batched_powersgd", Fusion::Rule::kGroups);
    strategy.fusion.groups = {{0, 1}, {2}};  // 45 elements in a square of 7, 16 in one of 4
    strategy.compression.rank = 2;
    // Rows that are multiples of one, the last cut off: of rank 2.
    Values row(7);
    for (float& value : row) value = normal(random);
    Gradients input(static_cast<std::size_t>(ranks));
    for (auto& own : input) {
      Values flat;
      for (int i = 0; i < 7; ++i) {
        const float factor = normal(random);
        for (const float value : row) flat.push_back(factor * value);
      }
      own = {Values(flat.begin(), flat.begin() + 20), Values(flat.begin() + 20, flat.begin() + 45),
             Values(16, flat[0])};
    }
    expect_near_everywhere(sums(workload, ranks, strategy, input), sum_of(input),
                           std::to_string(ranks));
  }
}

// Sizes that every group divides: the model's figure is the count of what really moved.
TEST(HostExecutor, BytesSentAreTheMetricsBytes) {
  Workload workload;
  workload.tensors = {tensor_of("a.w", {960}), tensor_of("a.b", {1920}),
                      tensor_of("b.w", {960}, DType::kFp16), tensor_of("c.w", {240, 720}),
                      sparse_tensor_of("embedding", {480, 2}, 96)};
  for (const auto& tensor : workload.tensors) ASSERT_EQ(tensor.elements % 240, 0);
  for (const int ranks : {1, 2, 3, 5, 8, 12}) {
    const Cluster cluster = cluster_of(ranks, 1);
    const Gradients input = random_gradients(workload, ranks, 9);
    collective::CostCache cache(cluster);
    const auto model = make_model_executor({cluster, {}, 1});
    for_all_ways(ranks, [&](Strategy strategy, const std::string& what) {
      for (const char* codec : {"", "dgc", "fp16", "powersgd"}) {
        strategy.compression.codec = codec;
        strategy.compression.sparsity = {0.5};
        strategy.compression.min_elements = 960;
        const plan::Plan plan = plan::make_plan(workload, cluster, strategy);
        const auto sent = run(workload, cluster, strategy, input).bytes_sent;
        const Timeline timeline = model->run(plan, {}, 1).timeline;
        const measure::Metrics metrics = measure::measure(plan, workload, timeline, 0, cache);
        EXPECT_NEAR(static_cast<double>(*std::ranges::max_element(sent)), metrics.bytes_on_wire,
                    1e-6 * metrics.bytes_on_wire + 1e-9)
            << what << ", codec '" << codec << "'";
      }
    });
  }
}

// The textbook's least: 2 (n-1)/n of the payload from every rank.
TEST(HostExecutor, ARingSendsTheLeast) {
  Workload workload;
  workload.tensors = {tensor_of("a", {240}), tensor_of("b", {480})};
  for (const int ranks : {2, 3, 4, 8, 16}) {
    const Strategy strategy = plan::strategy_with(Fusion::Rule::kOne);
    const Gradients input = random_gradients(workload, ranks, 10);
    for (const Bytes sent : run(workload, cluster_of(ranks, 1), strategy, input).bytes_sent) {
      EXPECT_EQ(sent, 2 * (ranks - 1) * 720 * 4 / ranks);
    }
  }
}

// Padding counts as payload on the wire, and compressed pairs count 8 bytes each.
TEST(HostExecutor, CountsPaddingAndPairs) {
  Workload workload;
  workload.tensors = {tensor_of("a", {10}), tensor_of("b", {10})};
  Strategy strategy = plan::strategy_with(Fusion::Rule::kOne);
  strategy.fusion.align = 256;
  const Gradients input = random_gradients(workload, 2, 11);
  EXPECT_EQ(run(workload, cluster_of(2, 1), strategy, input).bytes_sent,
            (std::vector<Bytes>{512, 512}));
  EXPECT_EQ(run(workload, cluster_of(2, 1), dgc(0.5, 1), input).bytes_sent,
            (std::vector<Bytes>{2 * 5 * 8, 2 * 5 * 8}));
}

TEST(HostExecutor, ASecondPeriodSumsTheSums) {
  const Workload workload = awkward();
  const Gradients input = random_gradients(workload, 4, 12);
  const auto expected = changed(sum_of(input), [](float value) { return value * 4; });
  expect_everywhere(run(workload, cluster_of(4, 1), {}, input, 2).gradients, expected, "twice");
}

}  // namespace
}  // namespace syncline::run
