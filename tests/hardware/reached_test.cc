// The shares of rated rates, found again on the published runs that they were found on, and held
// against models that were left out.
#include "catalogue/hardware/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "catalogue/architectures/architecture.h"
#include "core/base/statistics.h"
#include "core/operators/evaluate.h"

namespace syncline::hardware {
namespace {

using operators::TransformerShape;

struct PublishedRun {
  const char* kind;
  const char* architecture;
  const char* device;
  DType dtype;
  std::int64_t batch;
  std::int64_t sequence;    // 0: images
  double samples_a_second;  // of one GPU
  double head = 1;          // work of the task's head, which BERT's architecture leaves out
};

std::vector<PublishedRun> runs_of_other_kinds() {
  constexpr auto kFp32 = DType::kFp32, kFp16 = DType::kFp16;
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
      {"BERT, fp32", "bert_large", "rtx-2080-ti", kFp32, 8, 64, 49, 1.107},
      {"BERT, fp32", "bert_large", "v100-sxm", kFp32, 16, 128, 32.48, 1.1},
      {"conv, half", "resnet50", "v100-sxm", kFp16, 32, 0, 740},
      {"conv, half", "resnet50", "v100-sxm", kFp16, 64, 0, 919.9},
      {"conv, half", "resnet50", "v100-sxm", kFp16, 128, 0, 1018.3},
      {"conv, half", "resnet50", "v100-sxm", kFp16, 256, 0, 1096.5},
      {"conv, half", "resnet50_v1.5", "v100-sxm", kFp16, 256, 0, 1200},
      {"conv, half", "resnet50_v1.5", "v100-sxm-32gb", kFp16, 256, 0, 1156},
      {"conv, half", "resnet50_v1.5", "a100-sxm-80gb", kFp16, 256, 0, 2470},
  };
}

Device known_device(const std::string& name) {
  const KnownDevice& known = *find_device(name);
  Device device;
  device.compute_capability = known.compute_capability;
  device.flops = known.flops * kReachedFlops;
  device.half_flops = known.half_flops * reached_half_flops(known.compute_capability);
  device.memory = known.memory * kReachedMemory;
  device.launch = kLaunch;
  device.kernel_gap = kKernelGap;
  return device;
}

Seconds backward_of(const operators::StepTimes& times) {
  return std::accumulate(times.backward.begin(), times.backward.end(), 0.0);
}

// log(published time / cost).
double error_of(const PublishedRun& run) {
  const operators::Architecture& row = *operators::find_architecture(run.architecture);
  operators::ArchitectureOptions options;
  options.batch = run.batch;
  options.dtype = run.dtype;
  if (run.sequence > 0) options.sequence = run.sequence;
  options.optimizer = row.optimizer;
  const auto times = operators::evaluate_operators(operators::generate(row, options).operators,
                                                   known_device(run.device));
  const Seconds cost = times.forward + times.update + backward_of(times);
  return std::log(static_cast<double>(run.batch) / run.samples_a_second / (cost * run.head));
}

// Of one kind of work in a forward and in a backward pass.
struct Passes {
  Seconds forward = 0;
  Seconds backward = 0;
};

// A run of tests/data/training_runs.csv: its time, and what stands in it at rated rates.
struct GptRun {
  std::string model;  // its width and depth
  int capability = 0;
  bool again = false;
  Seconds time = 0;
  Seconds cost = 0;  // by evaluate_operators and the shares that ship; nothing computed again
  Passes products, attention, others;
};

operators::Generated gpt(const TransformerShape& shape, std::int64_t batch, std::int64_t sequence) {
  operators::ArchitectureOptions options;
  options.batch = batch;
  options.dtype = DType::kBf16;
  options.sequence = sequence;
  options.shape = shape;
  options.flash_attention = true;
  operators::Generated generated =
      operators::generate(*operators::find_architecture("gpt2"), options);
  std::erase_if(generated.operators.edit().operators,
                [](const Operator& op) { return op.kind.starts_with("dropout"); });
  return generated;
}

GptRun gpt_run(const std::string& line) {
  std::istringstream words(line);
  std::string name, word;
  std::getline(words, name, ',');
  std::vector<double> figures;
  while (std::getline(words, word, ',')) figures.push_back(std::stod(word));
  const auto whole = [&](std::size_t i) { return static_cast<std::int64_t>(figures.at(i)); };
  const TransformerShape shape{.layers = whole(0),
                               .hidden = whole(1),
                               .heads = whole(2),
                               .words = 50368,
                               .positions = 1 << 17};
  const OperatorList list = gpt(shape, whole(4), whole(3)).operators;
  const Device device = known_device(name);
  GptRun run;
  run.model = std::to_string(whole(0)) + "x" + std::to_string(whole(1));
  run.capability = device.compute_capability;
  run.again = whole(6) == 1;
  run.time = figures[3] * figures[4] / figures[5];
  const auto times = operators::evaluate_operators(list, device);
  run.cost = times.forward + backward_of(times);
  for (const Operator& op : list.operators) {
    if (op.part == StepPart::kUpdate) continue;
    const auto add = [&](Passes& to, Seconds time) {
      (op.part == StepPart::kForward ? to.forward : to.backward) += time;
    };
    Operator beside = op;
    beside.matrix_flops = 0;
    const Seconds moved = traffic(list, op) / device.memory;
    const bool product = op.matrix_flops > 0;
    add(run.others,
        (product ? moved + op.flops / device.flops : operators::kernel_time(list, beside, device)) +
            op.kernels * kKernelGap);
    add(op.kind.starts_with("flash_attn") ? run.attention : run.products,
        op.matrix_flops / find_device(name)->half_flops);
  }
  return run;
}

std::vector<GptRun> gpt_runs() {
  std::ifstream file(SYNCLINE_SOURCE_DIR "/tests/data/training_runs.csv");
  std::vector<GptRun> runs;
  std::string line;
  while (std::getline(file, line)) {
    const bool head = line.starts_with('#') || line.starts_with("device,");
    if (!head) runs.push_back(gpt_run(line));
  }
  return runs;
}

// What is found on runs: of the rated rate, products and attention up to Ampere and since Hopper,
// and how much of the forward pass is computed again.
using Shares = std::array<double, 5>;

double error_with(const Shares& shares, const GptRun& run) {
  const std::size_t kind = run.capability < 90 ? 0 : 2;
  const auto pass = [&](Seconds Passes::*part) {
    return run.products.*part / shares[kind] + run.attention.*part / shares[kind + 1] +
           run.others.*part;
  };
  const Seconds cost =
      pass(&Passes::backward) + pass(&Passes::forward) * (1 + (run.again ? shares[4] : 0));
  return std::log(run.time / cost);
}

// With the least sum of |log error|, share by share in ever smaller steps.
Shares found_on(const std::vector<GptRun>& runs, const std::string& left_out) {
  const auto lost = [&](const Shares& shares) {
    double sum = 0;
    for (const GptRun& run : runs) {
      if (run.model != left_out) sum += std::fabs(error_with(shares, run));
    }
    return sum;
  };
  Shares best{0.7, 0.5, 0.6, 0.4, 0.8};
  double least = lost(best);
  for (double step = 0.1; step > 1e-4;) {
    const double before = least;
    for (std::size_t i = 0; i < best.size(); ++i) {
      for (const double factor : {1 + step, 1 / (1 + step)}) {
        Shares next = best;
        next[i] *= factor;
        const double then = lost(next);
        if (then >= least) continue;
        least = then;
        best = next;
      }
    }
    if (least == before) step /= 2;
  }
  return best;
}

// The share that the cost gives to a kind of product.
double evaluated_share(const char* kind, int capability) {
  OperatorList list;
  Operator op;
  op.kind = kind;
  op.matrix_flops = 1;
  op.dtype = DType::kBf16;
  Device device;
  device.compute_capability = capability;
  device.flops = 1;
  device.half_flops = reached_half_flops(capability);
  device.memory = 1;
  return 1 / operators::kernel_time(list, op, device);
}

struct Spread {
  double median, p90, inside;
};

Spread spread_of(const std::vector<double>& errors, double within) {
  std::vector<double> sizes;
  double inside = 0;
  for (const double error : errors) {
    sizes.push_back(std::fabs(std::expm1(error)));
    inside += std::fabs(error) <= within ? 1 : 0;
  }
  return {percentile(sizes, 0.5), percentile(sizes, 0.9),
          inside / static_cast<double>(errors.size())};
}

constexpr double kWithin = 1.2816 * 0.14;  // kRatedOperators (studies/rows/uncertainty.cc)

TEST(Reached, IsWhatPublishedRunsSay) {
  const std::vector<GptRun> runs = gpt_runs();
  ASSERT_EQ(runs.size(), 142U);
  const Shares found = found_on(runs, "");
  EXPECT_NEAR(found[0], evaluated_share("matmul_v2", 80), 0.02);
  EXPECT_NEAR(found[1], evaluated_share("flash_attn", 80), 0.02);
  EXPECT_NEAR(found[2], evaluated_share("matmul_v2", 90), 0.02);
  EXPECT_NEAR(found[3], evaluated_share("flash_attn_grad", 90), 0.02);
  EXPECT_NEAR(found[4], 0.63, 0.02);  // formats/input/read_workload.cc
  // The whole cost, with the host's launches, is that of the parts.
  for (const GptRun& run : runs) {
    GptRun plain = run;
    plain.again = false;
    const Shares ship{evaluated_share("matmul_v2", 80), evaluated_share("flash_attn", 80),
                      evaluated_share("matmul_v2", 90), evaluated_share("flash_attn", 90), 0};
    EXPECT_NEAR(run.cost, run.time / std::exp(error_with(ship, plain)), 0.02 * run.cost)
        << run.model;
  }
}

// Each model is evaluated by what the others say.
TEST(Reached, PredictsModelsThatWereLeftOut) {
  const std::vector<GptRun> runs = gpt_runs();
  std::map<std::string, std::vector<double>> models;
  for (const GptRun& run : runs) models[run.model];
  std::vector<double> all;
  for (auto& [model, errors] : models) {
    const Shares found = found_on(runs, model);
    for (const GptRun& run : runs) {
      if (run.model == model) errors.push_back(error_with(found, run));
    }
    all.insert(all.end(), errors.begin(), errors.end());
    const Spread spread = spread_of(errors, kWithin);
    RecordProperty(model, std::to_string(spread.median) + " " + std::to_string(spread.p90));
  }
  EXPECT_EQ(models.size(), 8U);
  const Spread spread = spread_of(all, kWithin);
  RecordProperty("median", std::to_string(spread.median));
  RecordProperty("p90", std::to_string(spread.p90));
  RecordProperty("inside", std::to_string(spread.inside));
  EXPECT_LT(spread.median, 0.03);
  EXPECT_LT(spread.p90, 0.15);
  EXPECT_GT(spread.inside, 0.8);
}

TEST(Reached, OtherKindsOfModelsLieInTheInterval) {
  std::map<std::string, std::vector<double>> kinds;
  std::vector<double> all;
  for (const PublishedRun& run : runs_of_other_kinds()) {
    const double error = error_of(run);
    kinds[run.kind].push_back(error);
    all.push_back(error);
    RecordProperty(std::string(run.kind) + ", " + run.device + ", " + run.architecture + ", " +
                       std::to_string(run.batch),
                   std::to_string(error));
  }
  EXPECT_GE(spread_of(all, kWithin).inside, 0.8);
  for (auto& [kind, errors] : kinds) {
    std::sort(errors.begin(), errors.end());
    const double median = errors[errors.size() / 2];
    EXPECT_LT(std::fabs(median), 0.12) << kind;
  }
}

}  // namespace
}  // namespace syncline::hardware
