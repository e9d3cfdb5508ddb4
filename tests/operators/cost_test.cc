// The roofline and its two clocks in closed form.
#include "core/operators/evaluate.h"

#include <gtest/gtest.h>

namespace syncline::operators {
namespace {

Device device_of(Seconds launch, Seconds gap) {
  Device device;
  device.flops = 10e12;
  device.half_flops = 100e12;
  device.memory = 1e12;
  device.launch = launch;
  device.kernel_gap = gap;
  return device;
}

// `count` operators in a row, each moving so many bytes.
OperatorList chain(int count, Bytes bytes) {
  OperatorList list;
  for (int i = 0; i <= count; ++i) list.values.push_back({"", bytes / 2});
  for (int i = 0; i < count; ++i) {
    list.operators.push_back({"relu", StepPart::kForward, {{i}}, {{i + 1}}});
  }
  return list;
}

TEST(OperatorCost, TheLargerOfComputeAndMemoryAndOfProductsTheSum) {
  OperatorList list = chain(1, 1000000);
  Operator& op = list.operators[0];
  const Device device = device_of(0, 0);
  EXPECT_DOUBLE_EQ(kernel_time(list, op, device), 1e-6);
  op.flops = 5e6;
  EXPECT_DOUBLE_EQ(kernel_time(list, op, device), 1e-6);
  op.flops = 10e6;
  op.matrix_flops = 30e6;
  EXPECT_DOUBLE_EQ(kernel_time(list, op, device), 1e-6 + 4e-6);
  // Tensor cores take products in half precision, nothing else.
  op.dtype = DType::kFp16;
  op.matrix_flops = 300e6;
  EXPECT_DOUBLE_EQ(kernel_time(list, op, device), 1e-6 + 4e-6);
  Device plain = device;
  plain.half_flops = 0;
  EXPECT_DOUBLE_EQ(kernel_time(list, op, plain), 1e-6 + 31e-6);
}

// Attention's kernels reach less of a later device; fp32 convolves in fewer products.
TEST(OperatorCost, SharesOfTheRateOfProducts) {
  OperatorList list = chain(1, 0);
  Operator& op = list.operators[0];
  Device device = device_of(0, 0);
  op.matrix_flops = 300e6;
  op.dtype = DType::kFp16;
  op.kind = "flash_attn_grad";
  device.compute_capability = 80;
  const Seconds before = kernel_time(list, op, device);
  device.compute_capability = 90;
  EXPECT_GT(kernel_time(list, op, device), 1.4 * before);
  op.kind = "conv2d_grad";
  EXPECT_DOUBLE_EQ(kernel_time(list, op, device), 3e-6);
  op.dtype = DType::kFp32;
  device.compute_capability = 70;  // without TF32
  EXPECT_DOUBLE_EQ(kernel_time(list, op, device), 30e-6 / 1.3);
}

TEST(OperatorCost, PassesCountTheirBytes) {
  OperatorList list = chain(1, 2000);
  list.operators[0].inputs[0].passes = 3;
  EXPECT_DOUBLE_EQ(traffic(list, list.operators[0]), 4000);
  list.operators[0].outputs[0].passes = 0;
  EXPECT_DOUBLE_EQ(traffic(list, list.operators[0]), 3000);
}

// Kernels longer than a launch run gap by gap, the first one launch late; shorter ones wait for
// their launches.
TEST(OperatorCost, TwoClocksInClosedForm) {
  for (const int count : {1, 2, 10, 1000}) {
    const auto n = static_cast<double>(count);
    const auto forward = [&](Bytes bytes) {
      return evaluate_operators(chain(count, bytes), device_of(5e-6, 1e-6)).forward;
    };
    EXPECT_NEAR(forward(20000000), 5e-6 + n * 20e-6 + (n - 1) * 1e-6, 1e-12);
    EXPECT_NEAR(forward(2000000), n * 5e-6 + 2e-6, 1e-12);
  }
}

// A host that ran ahead during long kernels hides the launches of short ones behind them.
TEST(OperatorCost, LongKernelsHideLaterLaunches) {
  OperatorList list;
  list.values = {{"", 100000000}, {"", 0}};
  list.operators.push_back({"conv2d", StepPart::kForward, {{0}}, {{1}}});
  for (int i = 0; i < 10; ++i) {
    list.operators.push_back({"relu", StepPart::kForward, {{1}}, {}});
  }
  EXPECT_NEAR(evaluate_operators(list, device_of(5e-6, 1e-6)).forward, 5e-6 + 100e-6 + 10e-6,
              1e-12);
}

TEST(OperatorCost, KernelsOfOneOperatorAreLaunchedOneByOne) {
  OperatorList list = chain(1, 2000000);
  list.operators[0].kernels = 2;
  EXPECT_NEAR(evaluate_operators(list, device_of(5e-6, 1e-6)).forward, 10e-6 + 1e-6, 1e-12);
}

// Waits add up to the backward pass: each gradient is ready with the operator that writes it, and
// what follows the last one counts to it.
TEST(OperatorCost, GradientsAreReadyWithTheirOperators) {
  OperatorList list;
  for (int i = 0; i < 8; ++i) list.values.push_back({"", 1000000});
  list.operators = {
      {"a", StepPart::kForward, {{0}}, {}},  {"b", StepPart::kBackward, {{0}}, {{1}}},
      {"c", StepPart::kBackward, {{0}}, {}}, {"d", StepPart::kBackward, {{0}}, {{2}, {3}}},
      {"e", StepPart::kBackward, {{0}}, {}}, {"f", StepPart::kUpdate, {{1}}, {}}};
  list.gradients = {1, 2, 3};
  const StepTimes times = evaluate_operators(list, device_of(0, 0));
  EXPECT_NEAR(times.forward, 1e-6, 1e-15);
  ASSERT_EQ(times.backward.size(), 3u);
  EXPECT_NEAR(times.backward[0], 2e-6, 1e-15);  // b reads and writes
  EXPECT_NEAR(times.backward[1], 1e-6 + 3e-6, 1e-15);
  EXPECT_NEAR(times.backward[2], 1e-6, 1e-15);  // with d; e counts to it
  EXPECT_NEAR(times.update, 1e-6, 1e-15);
  // A gradient that is written before the one listed ahead of it waits for nothing more.
  list.gradients = {2, 1, 3};
  EXPECT_EQ(evaluate_operators(list, device_of(0, 0)).backward[1], 0);
}

}  // namespace
}  // namespace syncline::operators
