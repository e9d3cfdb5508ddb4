// Random steps of known truth, in the words of every torch: what is derived is the truth.
#include <gtest/gtest.h>

#include "imports/scenario_of.h"
#include "tests/support/jobs.h"
#include "tests/support/kineto_trace.h"

namespace syncline::job::kineto {
namespace {

void expect_same(const Step& read, const Step& truth, bool shapes) {
  constexpr double kExact = 1e-9;
  const std::pair<const char*, Seconds Step::*> parts[] = {{"gpu", &Step::gpu},
                                                           {"cpu", &Step::cpu},
                                                           {"broadcast", &Step::broadcast},
                                                           {"forward", &Step::forward},
                                                           {"backward", &Step::backward},
                                                           {"copy_in", &Step::copy_in},
                                                           {"copy_out", &Step::copy_out},
                                                           {"copy_kernels", &Step::copy_kernels},
                                                           {"exposed", &Step::exposed},
                                                           {"stages", &Step::stages},
                                                           {"host_gap", &Step::host_gap},
                                                           {"update", &Step::update},
                                                           {"between", &Step::between},
                                                           {"between_idle", &Step::between_idle},
                                                           {"idle", &Step::idle}};
  for (const auto& [name, part] : parts) EXPECT_NEAR(read.*part, truth.*part, kExact) << name;
  EXPECT_NEAR(test::sum_of(read), read.gpu, kExact);
  ASSERT_EQ(read.gradients.size(), truth.gradients.size());
  for (std::size_t i = 0; i < truth.gradients.size(); ++i) {
    const Gradient &own = read.gradients[i], &wanted = truth.gradients[i];
    EXPECT_EQ(own.elements, wanted.elements);
    EXPECT_EQ(own.dtype, wanted.dtype);
    for (const auto part : {&Gradient::wait, &Gradient::copy_in, &Gradient::copy_out}) {
      EXPECT_NEAR(own.*part, wanted.*part, kExact) << i;
    }
    if (shapes) {
      EXPECT_EQ(own.shape, wanted.shape);
    }
  }
  ASSERT_EQ(read.exchanges.size(), truth.exchanges.size());
  for (std::size_t i = 0; i < truth.exchanges.size(); ++i) {
    const ObservedExchange &own = read.exchanges[i], &wanted = truth.exchanges[i];
    EXPECT_EQ(std::tie(own.kind, own.elements, own.dtype, own.gradients),
              std::tie(wanted.kind, wanted.elements, wanted.dtype, wanted.gradients));
    for (const auto part : {&ObservedExchange::complete, &ObservedExchange::sent,
                            &ObservedExchange::duration, &ObservedExchange::exposed}) {
      EXPECT_NEAR(own.*part, wanted.*part, kExact) << i;
    }
    EXPECT_LE(own.exposed, own.duration + kExact) << i;
  }
}

class KinetoDialect : public testing::TestWithParam<test::TraceDialect> {};

TEST_P(KinetoDialect, DerivedSettingsAreTheTrueOnes) {
  const test::Scratch scratch;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    test::TraceWriter writer(GetParam(), seed);
    const std::string path = scratch.path("rank0.pt.trace.json");
    test::write_text(path, writer.file(3));
    const Observed job = read_job({path});
    ASSERT_EQ(job.ranks.size(), 1u);
    EXPECT_EQ(job.name, "rank0");
    EXPECT_EQ(job.bucket_views, GetParam().views);
    EXPECT_EQ(job.comm_hook, GetParam().hook);
    EXPECT_EQ(job.accumulation_steps, GetParam().passes);
    EXPECT_EQ(job.ddp_modules, 1);
    ASSERT_EQ(job.ranks[0].steps.size(), 3u) << GetParam().name << " seed " << seed;
    for (std::size_t i = 0; i < 3; ++i) {
      expect_same(job.ranks[0].steps[i], writer.truth()[i], GetParam().shapes);
    }
    ASSERT_FALSE(HasFailure()) << GetParam().name << " seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, KinetoDialect, testing::ValuesIn(test::trace_dialects()),
                         [](const auto& dialect) { return dialect.param.name; });

// How much memory an update needs is known by the name of its optimizer.
TEST(KinetoOptimizer, IsTheOneThatTheTraceNames) {
  const test::Scratch scratch;
  const std::string path = scratch.path("rank0.json");
  const std::pair<const char*, const char*> cases[] = {
      {"Adam", "adam"},    {"AdamW", "adam"}, {"FusedAdam", "adam"}, {"RMSprop", "momentum"},
      {"SGD", "momentum"}, {"Muon", ""},      {"AdamW8bit", ""}};
  for (const auto& [optimizer, word] : cases) {
    test::TraceDialect dialect;
    dialect.shapes = true;
    dialect.optimizer = optimizer;
    test::write_text(path, test::TraceWriter(dialect, 3).file(3));
    const Imported imported = scenario_of(read_job({path}), {});
    const Json& workload = imported.scenario.at("workload");
    EXPECT_EQ(workload.value("optimizer", ""), word) << optimizer;
    EXPECT_EQ(test::any_contains(imported.assumed, "taken with a momentum"),
              optimizer == std::string("SGD"))
        << optimizer;
    EXPECT_EQ(test::scenario_in(imported.scenario).workload.optimizer_given, word != std::string())
        << optimizer;
  }
}

}  // namespace
}  // namespace syncline::job::kineto
