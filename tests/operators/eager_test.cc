// PyTorch's modules as chains of kernels, against counts by hand and what a GPU ran.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "catalogue/architectures/architecture.h"
#include "core/operators/evaluate.h"

namespace syncline::operators {
namespace {

ArchitectureOptions options_of(const Architecture& row, DType dtype, bool eager) {
  ArchitectureOptions options;
  options.batch = 2;
  options.sequence = 64;
  options.dtype = dtype;
  options.optimizer = row.optimizer;
  options.flash_attention = row.fused;
  options.eager = eager;
  return options;
}

OperatorList list_of(const char* name, DType dtype, bool eager) {
  const Architecture& row = *find_architecture(name);
  return generate(row, options_of(row, dtype, eager)).operators;
}

double bytes_of(const OperatorList& list, const char* kind) {
  double bytes = 0;
  for (const Operator& op : list.operators) bytes += op.kind == kind ? traffic(list, op) : 0;
  return bytes;
}

int kernels_of(const OperatorList& list) {
  int kernels = 0;
  for (const Operator& op : list.operators) kernels += std::max(1, op.kernels);
  return kernels;
}

// x in fp32, its square, the mean, the product, back to bf16, times the weight: 36 bytes an element
// where one kernel reads and writes 4.
TEST(Eager, ANormWritesEveryValueInBetween) {
  const auto fused = list_of("llama3.2_1b", DType::kBf16, false);
  const auto eager = list_of("llama3.2_1b", DType::kBf16, true);
  EXPECT_NEAR(bytes_of(eager, "rms_norm") / bytes_of(fused, "rms_norm"), 9, 0.01);
  EXPECT_NEAR(bytes_of(eager, "swiglu") / bytes_of(fused, "swiglu"), 10. / 6, 0.01);
  // In fp32 nothing is converted.
  const auto wide = list_of("llama3.2_1b", DType::kFp32, true);
  const auto wide_fused = list_of("llama3.2_1b", DType::kFp32, false);
  EXPECT_NEAR(bytes_of(wide, "rms_norm") / bytes_of(wide_fused, "rms_norm"), 3.5, 0.01);
}

TEST(Eager, ProductsAndAttentionAreTheSame) {
  for (const char* name : {"llama3.2_1b", "gpt2_small", "vit_b_16"}) {
    const auto fused = list_of(name, DType::kBf16, false);
    const auto eager = list_of(name, DType::kBf16, true);
    for (const StepPart part : {StepPart::kForward, StepPart::kBackward}) {
      const auto products = [&](const OperatorList& list) {
        double flops = 0;
        for (const Operator& op : list.operators) flops += op.part == part ? op.matrix_flops : 0;
        return flops;
      };
      EXPECT_DOUBLE_EQ(products(fused), products(eager)) << name;
    }
    EXPECT_EQ(bytes_of(fused, "flash_attn"), bytes_of(eager, "flash_attn")) << name;
  }
}

// torch.optim keeps its values in the parameters' format: 14 bytes a parameter in bf16, and its
// lists pass over them 40 bytes long.
TEST(Eager, AnUpdateHasNoCopiesInFp32) {
  const auto eager = list_of("llama3.2_1b", DType::kBf16, true);
  constexpr double kParameters = 1'235'814'400;
  EXPECT_NEAR(bytes_of(eager, "adam"), 40 * kParameters, 0.001 * 40 * kParameters);
}

// torch adds a bias inside the product.
TEST(Eager, BiasesAreAddedByTheirProducts) {
  for (const char* name : {"gpt2_small", "bert_base", "vit_b_16"}) {
    const auto fused = list_of(name, DType::kBf16, false);
    const auto eager = list_of(name, DType::kBf16, true);
    EXPECT_GE(count_of(eager, "fused_gemm_epilogue"), 4 * 12) << name;
    EXPECT_EQ(count_of(fused, "elementwise_add") - count_of(eager, "elementwise_add"),
              count_of(eager, "fused_gemm_epilogue"))
        << name;
  }
}

// GPT-2's tanh is eight kernels, BERT's and ViT's gelu is one.
TEST(Eager, OnlyGpt2HasTheLongActivation) {
  EXPECT_NEAR(bytes_of(list_of("gpt2_small", DType::kBf16, true), "gelu") /
                  bytes_of(list_of("gpt2_small", DType::kBf16, false), "gelu"),
              9, 0.01);
  EXPECT_EQ(bytes_of(list_of("vit_b_16", DType::kBf16, true), "gelu"),
            bytes_of(list_of("vit_b_16", DType::kBf16, false), "gelu"));
}

// Kernels of a step as torch 2.11 launched them on an H200, the update's 60 to 145 lists left out
// (scenarios/published/gpu/h200_steps.json); a step by our count has one a parameter there.
TEST(Eager, KernelsAreAboutAsNumerousAsTorchs) {
  const struct {
    const char* name;
    int launched;
  } counted[] = {{"gpt2_small", 920}, {"gpt2_large", 2690}, {"gpt2_xl", 3270}};
  for (const auto& [name, launched] : counted) {
    const auto list = list_of(name, DType::kBf16, true);
    const int updates = count_of(list, "adam");
    EXPECT_NEAR(kernels_of(list) - updates, launched, 0.25 * launched) << name;
  }
}

Device hopper() {
  Device device;
  device.compute_capability = 90;
  device.flops = 47e12;
  device.half_flops = 653e12;
  device.memory = 3.84e12;
  return device;
}

Operator product_of(const char* kind, DType dtype, std::int64_t columns) {
  Operator op;
  op.kind = kind;
  op.dtype = dtype;
  op.matrix_flops = 1e12;
  op.columns = columns;
  return op;
}

TEST(Products, AreSlowWithOddColumns) {
  const auto seconds = [](std::int64_t columns, int capability) {
    Device device = hopper();
    device.compute_capability = capability;
    return kernel_time({}, product_of("matmul_v2", DType::kBf16, columns), device);
  };
  EXPECT_NEAR(1 / seconds(50257, 90), 123, 3);  // TFLOP/s
  EXPECT_NEAR(seconds(50257, 90) / seconds(50258, 90), 2, 1e-9);
  EXPECT_EQ(seconds(50304, 90), seconds(0, 90));
  EXPECT_LT(seconds(50257, 80), seconds(50257, 90));
  EXPECT_EQ(seconds(50257, 70), seconds(50304, 70)) << "nobody has measured it";
}

// torch.set_float32_matmul_precision("high"): half the rate of half precision, attention's too.
TEST(Products, OthersUseTf32IfAsked) {
  for (const char* kind : {"matmul_v2", "flash_attn"}) {
    Operator op = product_of(kind, DType::kFp32, 50257);
    const Seconds exact = kernel_time({}, op, hopper());
    op.rounded = true;
    EXPECT_DOUBLE_EQ(1 / kernel_time({}, op, hopper()), 326.5) << kind;
    EXPECT_LT(kernel_time({}, op, hopper()), exact) << kind;
    Device turing = hopper();
    turing.compute_capability = 75;
    const Seconds told = kernel_time({}, op, turing);
    op.rounded = false;
    EXPECT_DOUBLE_EQ(told, kernel_time({}, op, turing)) << kind;
  }
}

TEST(Products, TakeFp8SinceAda) {
  Operator op = product_of("matmul_v2", DType::kBf16, 4096);
  const Seconds plain = kernel_time({}, op, hopper());
  op.rounded = true;
  EXPECT_DOUBLE_EQ(plain / kernel_time({}, op, hopper()), 2);
  EXPECT_FALSE(rounds(op, 80));
  EXPECT_TRUE(rounds(op, 89));
}

TEST(Products, ConvolutionsTakeTf32SinceAmpere) {
  const Operator op = product_of("conv2d", DType::kFp32, 0);
  Device device = hopper();
  EXPECT_NEAR(1 / kernel_time({}, op, device), 0.6 * 326.5, 0.1);  // TFLOP/s
  EXPECT_TRUE(rounds(op, 80));
  EXPECT_FALSE(rounds(op, 75));
  EXPECT_FALSE(rounds(product_of("matmul_v2", DType::kFp32, 0), 90));
  device.compute_capability = 70;
  EXPECT_NEAR(1 / kernel_time({}, op, device), 1.3 * 47, 0.1);
}

}  // namespace
}  // namespace syncline::operators
