// The shares of rated rates against what they were found on: published runs, priced from the data
// sheet's rates and these shares, lie in the interval that such a price is given.
#include "core/hardware/device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "core/operators/architecture.h"
#include "core/operators/price.h"
#include "core/statistics.h"

namespace syncline::hardware {
namespace {

using operators::TransformerShape;

struct PublishedRun {
  const char* kind;  // the lines of hardware/device.h's table
  const char* architecture;
  const char* device;
  DType dtype;
  std::int64_t batch;
  std::int64_t sequence;     // 0: images
  double samples_a_second;   // of one GPU
  TransformerShape shape{};  // of a family
  double head = 1;           // work of the task's head, which BERT's architecture leaves out
};

// MPT is a GPT with ALiBi and a vocabulary of 50368.
constexpr TransformerShape mpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {.layers = layers, .hidden = hidden, .heads = heads, .words = 50368, .positions = 1 << 16};
}

PublishedRun gpt(const char* kind, const char* device, const TransformerShape& shape,
                 std::int64_t batch, std::int64_t sequence, double tokens_a_second) {
  return {kind,
          "gpt2",
          device,
          DType::kBf16,
          batch,
          sequence,
          tokens_a_second / static_cast<double>(sequence),
          shape};
}

// Sources as in device.h, in its order.
std::vector<PublishedRun> published_runs() {
  constexpr auto kFp32 = DType::kFp32, kFp16 = DType::kFp16;
  const char* a = "GPT, A100";
  const char* h = "GPT, H100";
  const TransformerShape m125 = mpt(12, 768, 12), m350 = mpt(24, 1024, 16),
                         m760 = mpt(24, 1536, 12), b1 = mpt(24, 2048, 16), b3 = mpt(32, 2560, 20),
                         b7 = mpt(32, 4096, 32);
  return {
      {"conv, fp32", "resnet50_v1.5", "v100-sxm-32gb", kFp32, 32, 0, 32 / 0.128086},
      {"conv, fp32", "resnet50", "v100-sxm", kFp32, 32, 0, 335.43},
      {"conv, fp32", "resnet50", "v100-sxm", kFp32, 64, 0, 353.38},
      {"conv, fp32", "resnet50", "v100-sxm", kFp32, 128, 0, 368.11},
      {"conv, fp32", "resnet50", "v100-sxm", kFp32, 32, 0, 304},
      {"conv, fp32", "vgg16", "v100-sxm", kFp32, 32, 0, 140},
      {"conv, fp32", "resnet50_v1.5", "v100-sxm", kFp32, 128, 0, 367},
      {"conv, fp32", "resnet50_v1.5", "v100-sxm-32gb", kFp32, 128, 0, 356},
      {"conv, fp32", "resnet50_v1.5", "rtx-2080-ti", kFp32, 64, 0, 253.1},
      {"BERT, fp32", "bert_large", "rtx-2080-ti", kFp32, 8, 64, 49, {}, 1.107},
      {"BERT, fp32", "bert_large", "v100-sxm", kFp32, 16, 128, 32.48, {}, 1.1},
      {"conv, half", "resnet50", "v100-sxm", kFp16, 32, 0, 740},
      {"conv, half", "resnet50", "v100-sxm", kFp16, 64, 0, 919.9},
      {"conv, half", "resnet50", "v100-sxm", kFp16, 128, 0, 1018.3},
      {"conv, half", "resnet50", "v100-sxm", kFp16, 256, 0, 1096.5},
      {"conv, half", "resnet50_v1.5", "v100-sxm", kFp16, 256, 0, 1200},
      {"conv, half", "resnet50_v1.5", "v100-sxm-32gb", kFp16, 256, 0, 1156},
      {"conv, half", "resnet50_v1.5", "a100-sxm-80gb", kFp16, 256, 0, 2470},
      gpt(a, "a100-sxm-80gb", m125, 40, 2048, 142830),
      gpt(a, "a100-sxm-80gb", m125, 64, 1024, 156468),
      gpt(a, "a100-sxm-40gb", m125, 26, 2048, 136334),
      gpt(a, "a100-sxm-40gb", m125, 104, 512, 156735),
      gpt(a, "a100-sxm-40gb", m125, 5, 8192, 86858),
      gpt(a, "a100-sxm-40gb", m350, 16, 2048, 55995),
      gpt(a, "a100-sxm-40gb", m350, 64, 512, 66284),
      gpt(a, "a100-sxm-40gb", m760, 12, 2048, 30173),
      gpt(a, "a100-sxm-40gb", m760, 48, 512, 34938),
      gpt(a, "a100-sxm-40gb", b1, 8, 2048, 19271),
      gpt(a, "a100-sxm-40gb", b1, 32, 512, 21782),
      gpt(a, "a100-sxm-40gb", b3, 5, 2048, 10065),
      gpt(a, "a100-sxm-40gb", b3, 20, 512, 11324),
      gpt(h, "h100-sxm", m760, 24, 2048, 63147),
      gpt(h, "h100-sxm", m760, 96, 512, 83749),
      gpt(h, "h100-sxm", m760, 6, 8192, 41825),
      gpt(h, "h100-sxm", b1, 14, 2048, 45455),
      gpt(h, "h100-sxm", b1, 56, 512, 52275),
      gpt(h, "h100-sxm", b1, 3, 8192, 29157),
      gpt(h, "h100-sxm", b3, 40, 512, 27965),
      gpt(h, "h100-sxm", b3, 20, 1024, 27046),
      gpt(h, "h100-sxm", b3, 3, 8192, 16578),
      gpt(h, "h100-sxm", b7, 6, 2048, 10643),
  };
}

// log(published time / price).
double error_of(const PublishedRun& run) {
  const operators::Architecture& row = *operators::find_architecture(run.architecture);
  const KnownDevice& known = *find_device(run.device);
  operators::ArchitectureOptions options;
  options.batch = run.batch;
  options.dtype = run.dtype;
  if (run.sequence > 0) options.sequence = run.sequence;
  options.optimizer = row.optimizer;
  options.shape = run.shape;
  options.flash_attention = row.shaped;
  Device device;
  device.flops = known.flops * kReachedFlops;
  device.half_flops = known.half_flops * kReachedHalfFlops;
  device.memory = known.memory * kReachedMemory;
  device.launch = kLaunch;
  device.kernel_gap = kKernelGap;
  const auto times =
      operators::price_operators(operators::generate(row, options).operators, device);
  // MPT's figures are of micro-batches, before an update that many of them share.
  const Seconds price = times.forward + (row.shaped ? 0 : times.update) +
                        std::accumulate(times.backward.begin(), times.backward.end(), 0.0);
  return std::log(static_cast<double>(run.batch) / run.samples_a_second / (price * run.head));
}

TEST(Reached, PublishedRunsLieInTheInterval) {
  constexpr double kSpread = 0.25;  // kRatedComputation
  std::map<std::string, std::vector<double>> kinds;
  double inside = 0, least = 0, most = 0;
  for (const PublishedRun& run : published_runs()) {
    const double error = error_of(run);
    kinds[run.kind].push_back(error);
    least = std::min(least, error);
    most = std::max(most, error);
    inside += std::fabs(error) <= 1.2816 * kSpread;
  }
  // device.h's own words: 0.77 to 1.47 times the price.
  EXPECT_NEAR(std::exp(least), 0.77, 0.005);
  EXPECT_NEAR(std::exp(most), 1.47, 0.005);
  EXPECT_GE(inside / 41, 0.8);
  for (auto& [kind, errors] : kinds) {
    std::sort(errors.begin(), errors.end());
    const double median = errors[errors.size() / 2];
    EXPECT_LT(std::fabs(median), 0.17) << kind;
  }
}

}  // namespace
}  // namespace syncline::hardware
