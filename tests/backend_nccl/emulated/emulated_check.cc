// The whole NCCL executor on an emulated GPU (emulated_gpu.cc): launches, events, communicators,
// staged work, the timeline, and what becomes of it when a rank fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <thread>
#include <tuple>

#include "backend_nccl/nccl_executor.h"
#include "core/base/error.h"
#include "core/executor.h"
#include "core/plan/compute_fusion.h"
#include "core/run/payload.h"
#include "live/link_calibration.h"
#include "studies/calibrate/device_fit.h"
#include "tests/support/live_cases.h"
#include "tests/support/operator_workloads.h"
#include "tests/support/ranks.h"

namespace syncline::kernels {

// The kernels that have been launched since this was asked last (emulated_gpu.cc).
std::set<std::string> launched_kernels();

namespace {

using test::Failures;
using test::LiveCase;

// To the bit: where the first difference is.
testing::AssertionResult same_bits(const run::RankGradients& a, const run::RankGradients& b) {
  if (a.size() != b.size()) return testing::AssertionFailure() << "not as many tensors";
  for (std::size_t t = 0; t < a.size(); ++t) {
    if (a[t].size() != b[t].size()) return testing::AssertionFailure() << "tensor " << t;
    for (std::size_t i = 0; i < a[t].size(); ++i) {
      if (std::memcmp(&a[t][i], &b[t][i], sizeof(float)) == 0) continue;
      return testing::AssertionFailure() << "tensor " << t << ", element " << i << " of "
                                         << a[t].size() << ": " << a[t][i] << ", not " << b[t][i];
    }
  }
  return testing::AssertionSuccess();
}

bool has_factors(const plan::Plan& plan) {
  return std::ranges::any_of(plan.buckets, [](const plan::Bucket& bucket) {
    return bucket.codec != nullptr && bucket.codec->low_rank;
  });
}

// NCCL adds in another order than the host, and sums of factors are no integers.
testing::AssertionResult same_values(const plan::Plan& plan, const run::RankGradients& a,
                                     const run::RankGradients& b) {
  if (!has_factors(plan) || plan.ranks == 2) return same_bits(a, b);
  const float tolerance = test::tolerance_of_factors(plan);
  for (std::size_t t = 0; t < a.size(); ++t) {
    for (std::size_t i = 0; i < a[t].size(); ++i) {
      if (std::fabs(a[t][i] - b[t][i]) <= tolerance) continue;
      return testing::AssertionFailure()
             << "tensor " << t << ", element " << i << ": " << a[t][i] << ", not " << b[t][i];
    }
  }
  return testing::AssertionSuccess();
}

void expect_host_values(int ranks, const Workload& workload, std::vector<LiveCase> list) {
#if !defined(SYNCLINE_EMULATED_CUBLASLT)
  std::erase_if(list, [](const LiveCase& each) { return has_factors(each.plan); });
#endif
  const run::Gradients input = test::gradients_of_all(workload, ranks);
  std::vector<run::Gradients> expected;
  for (const auto& c : list) {
    expected.push_back(run::make_host_executor(workload)->run(c.plan, input, 1).gradients);
  }
  const Failures failures = test::run_ranks(ranks, [&](live::ControlChannel& channel) {
    const auto executor = nccl_backend::make_nccl_executor(workload, channel);
    const auto rank = static_cast<std::size_t>(channel.rank());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const plan::Plan& plan = list[i].plan;
      const int periods = i % 3 == 0 ? 3 : 1;
      const run::Outcome outcome = executor->run(plan, input, periods);
      EXPECT_TRUE(same_values(list[i].plan, outcome.gradients[rank], expected[i][rank]))
          << list[i].what << ", rank " << rank;
      EXPECT_EQ(outcome.timeline.spans.size(),
                plan.ops.size() * static_cast<std::size_t>(ranks * periods));
      std::map<std::tuple<int, int, plan::OpId>, run::Span> spans;
      for (const run::Span& span : outcome.timeline.spans) {
        spans[{span.rank, span.period, span.op}] = span;
      }
      constexpr Seconds kStep = 2e-6;
      for (const run::Span& span : outcome.timeline.spans) {
        EXPECT_LE(span.begin, span.end);
        const plan::Op& op = plan.ops[static_cast<std::size_t>(span.op)];
        for (const plan::OpId before : op.after) {
          EXPECT_GE(span.begin + kStep, (spans[{span.rank, span.period, before}].end));
        }
        for (const plan::OpId before : op.after_previous) {
          if (span.period == 0) continue;
          EXPECT_GE(span.begin + kStep, (spans[{span.rank, span.period - 1, before}].end));
        }
      }
    }
  });
  EXPECT_EQ(failures, Failures(static_cast<std::size_t>(ranks)));
}

class Emulated : public testing::TestWithParam<int> {};

TEST_P(Emulated, MovesWhatTheHostMoves) {
  const Workload workload = test::awkward();
  expect_host_values(GetParam(), workload, test::live_cases(workload, GetParam()));
}

TEST_P(Emulated, MovesWhatTheHostMovesAcrossSteps) {
  Workload workload = test::even();
  workload.forward = 1e-3;
  for (auto& tensor : workload.tensors) tensor.backward = 2e-4;
  expect_host_values(GetParam(), workload, test::step_cases(workload, GetParam()));
}

// Two replicas of one rank and of two; three periods, whose outer steps follow one from the other.
TEST(EmulatedOuterSteps, MoveWhatTheHostMoves) {
  const Workload workload = test::awkward();
  for (const int group : {1, 2}) {
    const int ranks = 2 * group;
    const run::Gradients input = test::gradients_of_all(workload, ranks);
    for (const auto& [what, plan] :
         test::outer_cases(workload, test::cluster_of(2, group), group)) {
      const auto expected = run::make_host_executor(workload)->run(plan, input, 3).gradients;
      const Failures failures =
          test::run_ranks(ranks, [&, &plan = plan](live::ControlChannel& channel) {
            const auto executor = nccl_backend::make_nccl_executor(workload, channel);
            const auto rank = static_cast<std::size_t>(channel.rank());
            EXPECT_TRUE(same_bits(executor->run(plan, input, 3).gradients[rank], expected[rank]));
          });
      EXPECT_EQ(failures, Failures(static_cast<std::size_t>(ranks))) << what << ", group " << group;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, Emulated, testing::Values(1, 2, 4));

// ---- Scenarios of chance ------------------------------------------------------------------------

// Tensors of up to a few thousand elements; `shares`: each splits evenly into so many.
Workload random_workload(std::mt19937& random, int shares, bool formats) {
  Workload workload;
  const int tensors = 2 + static_cast<int>(random() % 7);
  for (int i = 0; i < tensors; ++i) {
    const std::int64_t largest = random() % 3 == 0 ? 3000 : 90;
    const std::int64_t elements = shares * (1 + static_cast<std::int64_t>(random()) % largest);
    constexpr DType kFormats[] = {DType::kFp32, DType::kFp32, DType::kFp16, DType::kFp64};
    std::vector<std::int64_t> shape{elements};
    if (random() % 3 == 0) shape.push_back(2 + static_cast<std::int64_t>(random() % 30));
    workload.tensors.push_back(
        test::tensor_of("t" + std::to_string(i), shape, kFormats[formats ? random() % 4 : 0]));
  }
  if (formats && random() % 2 == 0) {
    workload.tensors.push_back(test::sparse_tensor_of("rows", {40, 3}, 9));
  }
  workload.forward = 1e-4;
  for (auto& tensor : workload.tensors) tensor.backward = 1e-5;
  return workload;
}

// What every kind of strategy may have.
Strategy random_strategy(std::mt19937& random, int ranks) {
  Strategy strategy;
  const char* algorithms[] = {"ring", "double_binary_tree", "halving_doubling"};
  strategy.algorithm = algorithms[random() % 3];
  strategy.streams = 1 + static_cast<int>(random() % 3);
  strategy.overlap = random() % 5 != 0;
  strategy.fusion.rule = random() % 2 == 0 ? Fusion::Rule::kNone : Fusion::Rule::kSize;
  strategy.fusion.size = 64 << (random() % 8);
  if (ranks % 2 == 0 && random() % 2 == 0) {
    strategy.hierarchy.form =
        random() % 2 == 0 ? Hierarchy::Form::kLeaders : Hierarchy::Form::kSharded;
    strategy.hierarchy.group_size = 2;
  }
  return strategy;
}

struct Kind {
  const char* name;
  bool formats;  // tensors of any number format, and rows
  bool even;     // tensors split evenly among the ranks
  void (*choose)(std::mt19937& random, Strategy& strategy);
  bool (*shown)(const plan::Plan& plan);  // the plan has what the kind is about
};

bool has_codec(const plan::Plan& plan) {
  return std::any_of(plan.buckets.begin(), plan.buckets.end(),
                     [](const plan::Bucket& bucket) { return bucket.codec != nullptr; });
}

bool averages(const plan::Plan& plan) {
  return std::any_of(plan.ops.begin(), plan.ops.end(), [](const plan::Op& op) {
    const auto* compute = std::get_if<plan::Compute>(&op.work);
    return compute != nullptr && compute->phase == plan::Phase::kAverage;
  });
}

bool scatters(const plan::Plan& plan) {
  return std::any_of(plan.ops.begin(), plan.ops.end(), [](const plan::Op& op) {
    const auto* collective = std::get_if<collective::Collective>(&op.work);
    return collective != nullptr && collective->kind == collective::CollectiveKind::kReduceScatter;
  });
}

const Kind kKinds[] = {
    {"dgc", true, false,
     [](std::mt19937& random, Strategy& strategy) {
       strategy.compression.codec = "dgc";
       strategy.compression.min_elements = 1 + static_cast<std::int64_t>(random() % 100);
       const double sparsities[] = {0, 0.5, 0.75, 0.9375, 0.99, 0.999};
       strategy.compression.sparsity = {sparsities[random() % 6]};
     },
     has_codec},
    {"halves", true, false,
     [](std::mt19937& random, Strategy& strategy) {
       strategy.compression.codec = random() % 2 == 0 ? "fp16" : "bf16";
       strategy.compression.min_elements = 1 + static_cast<std::int64_t>(random() % 100);
     },
     has_codec},
    {"blocks", true, false,
     [](std::mt19937& random, Strategy& strategy) {
       const char* codecs[] = {"int8", "int4", "fp8", "fp8_e5m2"};
       strategy.compression.codec = codecs[random() % 4];
       strategy.compression.min_elements = 1 + static_cast<std::int64_t>(random() % 100);
       strategy.algorithm = random() % 2 == 0 ? "all_to_all" : "nccl";
     },
     has_codec},
    {"factors", true, false,
     [](std::mt19937& random, Strategy& strategy) {
       strategy.compression.codec = random() % 2 == 0 ? "powersgd" : "batched_powersgd";
       strategy.compression.rank = 1 + static_cast<int>(random() % 4);
       strategy.compression.min_elements = 1 + static_cast<std::int64_t>(random() % 100);
     },
     has_codec},
    {"shards", false, true,
     [](std::mt19937& random, Strategy& strategy) {
       // Shards among all ranks, or in groups that are replicas of each other.
       if (strategy.hierarchy.form != Hierarchy::Form::kSharded) strategy.hierarchy = {};
       strategy.algorithm = "ring";  // the only one of both halves in any world
       strategy.exchange =
           random() % 2 == 0 ? Strategy::Exchange::kSharded : Strategy::Exchange::kDecoupled;
       strategy.cross_step = random() % 2 == 0;
     },
     scatters},
    {"local", false, false,
     [](std::mt19937& random, Strategy& strategy) {
       strategy.local_sgd.enabled = true;
       strategy.local_sgd.period = 1 + static_cast<int>(random() % 3);
     },
     averages},
};

// A strategy that the planner refuses (an algorithm that does not fit the ranks, say) is drawn
// again.
std::pair<Workload, LiveCase> random_scenario(const Kind& kind, std::mt19937& random, int ranks) {
  for (;;) {
    const Workload workload = random_workload(random, kind.even ? ranks : 1, kind.formats);
    Strategy strategy = random_strategy(random, ranks);
    kind.choose(random, strategy);
    if (!test::fits(strategy, ranks)) continue;
    const std::string what = std::string(kind.name) + ", " + strategy.algorithm + ", form " +
                             std::to_string(static_cast<int>(strategy.hierarchy.form)) + ", " +
                             std::to_string(strategy.streams) + " streams";
    try {
      LiveCase made = test::planned(workload, test::cluster_of(ranks, 1), strategy, what);
      if (kind.shown(made.plan)) return {workload, std::move(made)};
    } catch (const InputError&) {
    }
  }
}

class RandomScenarios : public testing::TestWithParam<Kind> {};

TEST_P(RandomScenarios, LeaveWhatTheHostLeaves) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const int ranks = 2 + static_cast<int>(seed % 5);
    const auto [workload, scenario] = random_scenario(GetParam(), random, ranks);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(ranks) + " ranks");
    expect_host_values(ranks, workload, {scenario});  // three steps, one after the other
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, RandomScenarios, testing::ValuesIn(kKinds),
                         [](const auto& kind) { return std::string(kind.param.name); });

// ---- Which verb reaches which kernel ------------------------------------------------------------

std::filesystem::path kernels_folder() {
  return std::filesystem::path(SYNCLINE_SOURCE_DIR) / "kernels";
}

// Rows of kernels/README.md that name the verb; all rows where it is empty.
std::set<std::string> kernels_of_table(const std::string& verb) {
  std::set<std::string> names;
  std::istringstream lines(test::text_of(kernels_folder() / "README.md"));
  const std::regex row("\\| `([a-z_]+)` \\| ([a-z, ]+) \\|.*");
  std::smatch found;
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_match(line, found, row)) continue;
    if (found[2].str().find(verb) != std::string::npos) names.insert(found[1]);
  }
  return names;
}

TEST(EmulatedKernels, TheTableHasEveryKernelOfTheSources) {
  std::set<std::string> names;
  const std::regex kernel("__global__[^;{]*?([a-z_]+_kernel)\\(");
  for (const auto& file : std::filesystem::recursive_directory_iterator(kernels_folder())) {
    if (file.path().extension() != ".cu") continue;
    const std::string text = test::text_of(file.path());
    for (std::sregex_iterator found(text.begin(), text.end(), kernel), end; found != end; ++found) {
      names.insert((*found)[1]);
    }
  }
  EXPECT_EQ(names, kernels_of_table(""));
}

// One by one and fused, of images and of text. Gives the kernels that were launched, by workload.
std::map<std::string, std::set<std::string>> operators_run() {
  std::map<std::string, std::set<std::string>> by_workload;
  operators::ArchitectureOptions images;
  images.dtype = DType::kFp16;
  images.layout = Layout::kNhwc;
  images.image = 32;
  operators::ArchitectureOptions text;
  text.dtype = DType::kFp16;
  text.batch = 2;
  text.sequence = 16;
  text.shape = {.layers = 2, .hidden = 64, .heads = 2, .inner = 256, .words = 96, .positions = 64};
  ComputeFusion fusion;
  fusion.fuse_bn_act_ops = fusion.fuse_bn_add_act_ops = fusion.fuse_gemm_epilogue = true;
  fusion.fuse_elewise_add_act_ops = fusion.fuse_all_optimizer_ops = true;
  const Device device = test::small_gpu();
  for (const Workload& given :
       {test::architecture("resnet50", images), test::architecture("bert", text)}) {
    const Workload workload = test::evaluated(given, device);
    Workload fused = *plan::fused_workload(workload, device, fusion);
    fused.operators = plan::fuse_operators(workload, fusion).operators;
    for (const Workload& each : {workload, fused}) {
      launched_kernels();
      const plan::Plan plan = plan::make_plan(each, test::cluster_of(2, 1), {});
      const Failures failures = test::run_ranks(2, [&](live::ControlChannel& channel) {
        const run::Gradients input = test::gradients_of_one(each, channel.rank(), 2);
        nccl_backend::NcclSettings settings;
        settings.operators = &device;
        const auto executor = nccl_backend::make_nccl_executor(each, channel, settings);
        const run::Outcome outcome = executor->run(plan, input, 2);
        EXPECT_EQ(outcome.timeline.period_ends.size(), 2U);
        EXPECT_NE(executor->hardware().find(" operators run as kernels"), std::string::npos);
      });
      EXPECT_EQ(failures, Failures(2)) << each.name;
      by_workload[each.name].merge(launched_kernels());
    }
  }
  return by_workload;
}

// A step of each kind, and operators; then what `calibrate live nccl` does with its GPU. What the
// table does not say, nothing launches.
TEST(EmulatedKernels, EachIsReachedByTheVerbsOfItsRow) {
  launched_kernels();
  Workload workload = test::even();
  workload.forward = 1e-4;
  expect_host_values(2, workload, test::step_cases(workload, 2));
  expect_host_values(2, test::awkward(), test::live_cases(test::awkward(), 2));
  auto launched = launched_kernels();
  for (auto& [name, kernels] : operators_run()) launched.merge(kernels);
  EXPECT_EQ(launched, kernels_of_table("validate"));
#if defined(SYNCLINE_EMULATED_CUBLASLT)
  const Json json = syncline::Json::parse(nccl_backend::measured_kernels(false));
  EXPECT_EQ(launched_kernels(), kernels_of_table("calibrate"));
  EXPECT_EQ(json.at("machine").at("name"), "emulated GPU");
  // Times of a CPU do not get into a cluster.
  EXPECT_THROW(calibrate::kernel_costs(json, "emulated"), InputError);
  for (const auto& row : json.at("timings")) EXPECT_FALSE(row.contains("failed")) << row;
#endif
}

// What has a kernel is launched, the rest passes.
TEST(EmulatedOperators, RunAsKernels) {
  auto launched = operators_run();
  for (const auto& [name, kernels] : launched) {
    EXPECT_TRUE(kernels.contains("update_kernel")) << name;
    EXPECT_TRUE(kernels.contains("add_activation_kernel")) << name;
    EXPECT_EQ(kernels.contains("batch_normalise_kernel"), name == "resnet50") << name;
  }
}

TEST(EmulatedOperators, NeedOperators) {
  const Workload workload = test::even();
  const Device device = test::small_gpu();
  const Failures failures = test::run_ranks(1, [&](live::ControlChannel& channel) {
    nccl_backend::NcclSettings settings;
    settings.operators = &device;
    EXPECT_THROW(nccl_backend::make_nccl_executor(workload, channel, settings), InputError);
  });
  EXPECT_EQ(failures, Failures(1));
}

// A rank of the one emulated GPU, which says that it has one of its own.
class OnItsOwn final : public live::LiveExecutor {
 public:
  explicit OnItsOwn(std::unique_ptr<live::LiveExecutor> executor) : executor_(std::move(executor)) {
    EXPECT_TRUE(executor_->shares_device());
  }
  std::string_view name() const override { return executor_->name(); }
  Seconds clock_error() const override { return executor_->clock_error(); }
  std::string hardware() const override { return executor_->hardware(); }
  run::Outcome run(const plan::Plan& plan, const run::Gradients& input, int periods) override {
    return executor_->run(plan, input, periods);
  }

 private:
  std::unique_ptr<live::LiveExecutor> executor_;
};

// What `calibrate live nccl` measures of interference, as far as a GPU of a CPU can tell.
TEST(EmulatedOperators, AreMeasuredDuringAllReduces) {
  const Failures failures = test::run_ranks(2, [&](live::ControlChannel& channel) {
    const auto samples = live::interference_samples(
        channel,
        [](const Device& device, int channels) {
          return [device, channels](const Workload& workload, live::ControlChannel& own) {
            nccl_backend::NcclSettings settings;
            settings.operators = &device;
            settings.max_ctas = channels;
            return std::make_unique<OnItsOwn>(
                nccl_backend::make_nccl_executor(workload, own, settings));
          };
        },
        64, 64 << 10, 1);
    ASSERT_EQ(samples.size(), 5U);
    for (const auto& sample : samples) {
      EXPECT_GT(sample.computation, 0);
      EXPECT_GT(sample.collective, 0);
      EXPECT_TRUE(std::isfinite(sample.slowdown));
      EXPECT_TRUE(std::isfinite(sample.collective_slowdown));
    }
  });
  EXPECT_EQ(failures, Failures(2));
}

TEST(EmulatedTimeline, StepsTakeWhatThePlanSays) {
  Workload workload = test::even();
  workload.forward = 0.02;
  const plan::Plan plan = plan::make_plan(workload, test::cluster_of(2, 1), {});
  const Failures failures = test::run_ranks(2, [&](live::ControlChannel& channel) {
    const run::Gradients input = test::gradients_of_one(workload, channel.rank(), 2);
    const auto executor = nccl_backend::make_nccl_executor(workload, channel);
    const run::Outcome outcome = executor->run(plan, input, 3);
    EXPECT_GE(outcome.timeline.period_ends.front(), 0.0199);
    EXPECT_GE(outcome.timeline.period_ends.back(), 0.0597);
    EXPECT_GT(executor->clock_error(), 0);
    EXPECT_NE(executor->hardware().find("2 ranks on one GPU"), std::string::npos);
  });
  EXPECT_EQ(failures, Failures(2));
}

// Rank 1 never runs what the others wait for.
TEST(EmulatedFailure, ARankThatHangsIsTimedOut) {
  const Workload workload = test::even();
  const plan::Plan plan = plan::make_plan(workload, test::cluster_of(2, 1), {});
  const plan::Plan shorter = [&] {
    plan::Plan cut = plan;
    cut.ops.resize(1);
    cut.buckets.clear();
    return cut;
  }();
  const Failures failures = test::run_ranks(
      2,
      [&](live::ControlChannel& channel) {
        const run::Gradients input = test::gradients_of_one(workload, channel.rank(), 2);
        const auto executor = nccl_backend::make_nccl_executor(workload, channel);
        executor->run(plan, input, 1);
        executor->run(channel.rank() == 0 ? plan : shorter, input, 1);
      },
      std::chrono::milliseconds(5000));
  EXPECT_NE(failures[0].find("rank 0: waiting for all_reduce bucket 0"), std::string::npos)
      << failures[0];
  EXPECT_NE(failures[0].find("no progress for 5"), std::string::npos) << failures[0];
  EXPECT_NE(failures[1], "");
}

TEST(EmulatedFailure, ARankThatLeavesEndsTheOthers) {
  const Workload workload = test::even();
  const plan::Plan plan = plan::make_plan(workload, test::cluster_of(3, 1), {});
  const Failures failures = test::run_ranks(3, [&](live::ControlChannel& channel) {
    const run::Gradients input = test::gradients_of_one(workload, channel.rank(), 3);
    const auto executor = nccl_backend::make_nccl_executor(workload, channel);
    executor->run(plan, input, 1);
    if (channel.rank() == 2) {
      channel.fail("rank 2 has had enough");
      return;
    }
    executor->run(plan, input, 1);
  });
  for (const auto& failure : {failures[0], failures[1]}) {
    EXPECT_NE(failure.find("had enough"), std::string::npos) << failure;
  }
}

}  // namespace
}  // namespace syncline::kernels
