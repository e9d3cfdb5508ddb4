// Which kernels operators run as, by closed forms of their sizes, and which operators an operation
// of a plan stands for: each once a step.
#include "backend_nccl/operator_kernels.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "core/plan/compute_fusion.h"
#include "tests/support/live_cases.h"
#include "tests/support/operator_workloads.h"

namespace syncline::nccl_backend {
namespace {

using kernels::Activation;
using Kind = OperatorKernel::Kind;

operators::ArchitectureOptions half() {
  operators::ArchitectureOptions options;
  options.batch = 8;
  options.dtype = DType::kFp16;
  options.layout = Layout::kNhwc;
  return options;
}

ComputeFusion all() {
  ComputeFusion fusion;
  fusion.fuse_bn_act_ops = fusion.fuse_bn_add_act_ops = fusion.fuse_gemm_epilogue = true;
  fusion.fuse_all_optimizer_ops = true;
  return fusion;
}

Workload fused(const Workload& workload) {
  Workload result = workload;
  result.operators = plan::fuse_operators(workload, all()).operators;
  return result;
}

std::vector<OperatorKernel> of_kind(const Workload& workload, Kind kind) {
  std::vector<OperatorKernel> found;
  for (const auto& kernel : operator_kernels(workload, test::small_gpu())) {
    if (kernel.kind == kind) found.push_back(kernel);
  }
  return found;
}

template <typename Condition>
auto count(const std::vector<OperatorKernel>& kernels, Condition condition) {
  return std::count_if(kernels.begin(), kernels.end(), condition);
}

// 53 norms, 16 of them with a shortcut; the last of four stages has the fewest rows.
TEST(OperatorKernels, NormsHaveTheirRowsAndChannels) {
  const Workload resnet = test::architecture("resnet50", half());
  for (const auto& workload : {resnet, fused(resnet)}) {
    const auto norms = of_kind(workload, Kind::kNorm);
    EXPECT_EQ(norms.size(), 106U);
    EXPECT_EQ(norms.front().columns, 64);
    EXPECT_EQ(norms.front().rows, 8 * 112 * 112);
    EXPECT_EQ(count(norms, [](const auto& norm) { return norm.gradient; }), 53);
    EXPECT_EQ(count(norms, [](const auto& norm) { return norm.rows == 8 * 7 * 7; }), 20);
  }
  const auto norms = of_kind(fused(resnet), Kind::kNorm);
  EXPECT_EQ(count(norms, [](const auto& norm) { return norm.added; }), 32);
  EXPECT_EQ(count(of_kind(resnet, Kind::kNorm), [](const auto& norm) { return norm.added; }), 0);
  EXPECT_EQ(count(norms, [](const auto& n) { return n.activation == Activation::kRelu; }), 98);
}

// Products by hand: queries, keys, values and what comes out, and the two of the inner half.
TEST(OperatorKernels, ProductsHaveTheirDimensions) {
  operators::ArchitectureOptions options = half();
  options.sequence = 64;
  const Workload bert = test::architecture("bert_base", options);
  for (const auto& workload : {bert, fused(bert)}) {
    double flops = 0;
    for (const auto& product : of_kind(workload, Kind::kProduct)) {
      if (product.rows != 8 * 64) continue;  // the pooler's
      flops += 2.0 * static_cast<double>(product.rows * product.inner * product.columns) *
               (product.gradient ? (product.inputs_too ? 2 : 1) : 1);
      EXPECT_TRUE(product.inner == 768 || product.inner == 3072) << product.inner;
      EXPECT_TRUE(product.columns == 768 || product.columns == 3072) << product.columns;
    }
    EXPECT_DOUBLE_EQ(flops, 3 * 12 * 2.0 * 8 * 64 * (4 * 768.0 * 768 + 2 * 768.0 * 3072));
  }
  const auto products = of_kind(fused(bert), Kind::kProduct);
  EXPECT_EQ(count(products, [](const auto& p) { return p.activation == Activation::kGelu; }), 24);
  for (const auto& p : products) {
    if (p.activation != Activation::kGelu) continue;
    EXPECT_EQ(p.gradient ? p.inner : p.columns, 3072);
  }
}

TEST(OperatorKernels, UpdatesHaveAllParametersOnce) {
  operators::ArchitectureOptions options;
  options.batch = 2;
  const Workload resnet = test::architecture("resnet50", options);
  const std::int64_t parameters =
      std::accumulate(resnet.tensors.begin(), resnet.tensors.end(), std::int64_t{0},
                      [](std::int64_t sum, const Tensor& t) { return sum + t.elements; });
  const auto sum = [](const std::vector<OperatorKernel>& updates) {
    std::int64_t elements = 0;
    for (const auto& update : updates) elements += update.columns;
    return elements;
  };
  const auto single = of_kind(resnet, Kind::kUpdate);
  EXPECT_EQ(single.size(), resnet.tensors.size());
  EXPECT_EQ(sum(single), parameters);
  EXPECT_EQ(single.front().states, 1);
  const auto one = of_kind(fused(resnet), Kind::kUpdate);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(sum(one), parameters);
}

TEST(OperatorKernels, OperatorsWithoutValuesPassAsTime) {
  Workload bare;
  bare.operators.edit().values = {{"x", 4096}};
  for (const char* kind : {"batch_norm", "relu", "matmul_v2", "matmul_v2_grad", "adam", "sum"}) {
    for (const bool reads : {false, true}) {
      Operator op;
      op.kind = kind;
      op.matrix_flops = op.flops = 1e6;
      op.columns = 8;
      if (reads) op.inputs = op.outputs = {{0}};
      bare.operators.edit().operators.push_back(op);
    }
  }
  for (const auto& kernel : operator_kernels(bare, test::small_gpu())) {
    EXPECT_TRUE(kernel.kind == Kind::kTime || kernel.kind == Kind::kSum ||
                kernel.kind == Kind::kNorm)
        << static_cast<int>(kernel.kind);
    EXPECT_GT(kernel.seconds, 0);
  }
}

// Whatever a strategy cuts the passes into.
TEST(OperatorKernels, APlanComputesEachOperatorOnceAStep) {
  const Workload resnet =
      test::evaluated(test::architecture("resnet50", half()), test::small_gpu());
  const auto kernels = operator_kernels(resnet, test::small_gpu());
  auto cases = test::step_cases(resnet, 4);
  Workload twice = resnet;
  twice.micro_batches = 3;
  cases.push_back(test::planned(twice, test::cluster_of(4, 1), {}, "three micro-batches"));
  for (const auto& [what, plan] : cases) {
    if (what.starts_with("sharded") || what.starts_with("gathered")) continue;  // parts of updates
    std::vector<int> times(kernels.size(), 0);
    for (const auto& ranges : operators_by_operation(plan, resnet, kernels)) {
      for (const auto& range : ranges) {
        for (std::size_t i = range.first; i < range.last; ++i) ++times[i];
      }
    }
    for (std::size_t i = 0; i < times.size(); ++i) {
      const bool update = resnet.operators->operators[i].part == StepPart::kUpdate;
      const int passes = what == "three micro-batches" && !update ? 3 : 1;
      EXPECT_EQ(times[i], plan.steps * passes) << what << ", operator " << i;
      if (times[i] != plan.steps * passes) break;
    }
  }
}

TEST(OperatorKernels, AShardedUpdateIsAPartOfTheOperators) {
  const Workload resnet =
      test::evaluated(test::architecture("resnet50", half()), test::small_gpu());
  const auto kernels = operator_kernels(resnet, test::small_gpu());
  Strategy sharded;
  sharded.exchange = Strategy::Exchange::kSharded;
  const plan::Plan plan = plan::make_plan(resnet, test::cluster_of(4, 1), sharded);
  double all = 0, done = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (resnet.operators->operators[i].part == StepPart::kUpdate) all += kernels[i].seconds;
  }
  for (const auto& ranges : operators_by_operation(plan, resnet, kernels)) {
    for (const auto& range : ranges) {
      for (std::size_t i = range.first; i < range.last; ++i) {
        if (resnet.operators->operators[i].part == StepPart::kUpdate) done += kernels[i].seconds;
      }
    }
  }
  EXPECT_NEAR(done / all, 0.25, 0.1);
}

}  // namespace
}  // namespace syncline::nccl_backend
