// Compute fusion: the counts of the documents' logs, Paddle's guards, and what every rewrite must
// keep: the work, the gradients, the order.
#include "core/plan/compute_fusion.h"

#include <gtest/gtest.h>

#include <bitset>
#include <numeric>
#include <set>

#include "catalogue/architectures/architecture.h"
#include "core/plan.h"
#include "tests/support/operator_workloads.h"
#include "tests/support/text.h"

namespace syncline::plan {
namespace {

using test::architecture;

operators::ArchitectureOptions amp(Layout layout, DType dtype = DType::kFp16) {
  operators::ArchitectureOptions options;
  options.batch = 8;
  options.dtype = dtype;
  options.layout = layout;
  return options;
}

ComputeFusion only(bool ComputeFusion::*knob) {
  ComputeFusion fusion;
  fusion.*knob = true;
  return fusion;
}

ComputeFusion everything() { return {true, true, true, true, true, true}; }

OperatorList fused_by(const Workload& workload, bool ComputeFusion::*knob) {
  return fuse_operators(workload, only(knob)).operators;
}

FusionMatch match_of(const Workload& workload, bool ComputeFusion::*knob) {
  const auto matches = fuse_operators(workload, only(knob)).matches;
  EXPECT_EQ(matches.size(), 1u);
  return matches.front();
}

// So many values of these bytes, which operators read and write.
Workload of_values(std::size_t count, Bytes bytes, std::vector<Operator> operators = {}) {
  Workload workload;
  workload.operators.edit().values.assign(count, {"", bytes});
  workload.operators.edit().operators = std::move(operators);
  return workload;
}

double all_traffic(const OperatorList& list) {
  double sum = 0;
  for (const auto& op : list.operators) sum += traffic(list, op);
  return sum;
}

// Both batch-norm forms.
ComputeFusion batch_norm_forms() {
  ComputeFusion fusion;
  fusion.fuse_bn_act_ops = fusion.fuse_bn_add_act_ops = true;
  return fusion;
}

void expect_match(const FusionMatch& match, int forward, int backward) {
  EXPECT_EQ(match.forward, forward) << match.knob;
  EXPECT_EQ(match.backward, backward) << match.knob;
}

// The documents' log: "detected 16 subgraphs" twice, for the 16 residual sums forward and backward.
TEST(ComputeFusion, SixteenResidualSumsTwice) {
  const Workload resnet = architecture("resnet50");
  expect_match(match_of(resnet, &ComputeFusion::fuse_elewise_add_act_ops), 16, 16);
  const auto fused = fused_by(resnet, &ComputeFusion::fuse_elewise_add_act_ops);
  EXPECT_EQ(count_of(fused, "fused_elemwise_add_activation"), 16);
  EXPECT_EQ(count_of(fused, "fused_elemwise_add_activation_grad"), 16);
  EXPECT_EQ(count_of(fused, "relu"), 33);
  EXPECT_EQ(count_of(fused, "elementwise_add"), 1);  // the last layer's bias
  EXPECT_EQ(fused.operators.size(), resnet.operators->operators.size() - 32);
}

// "Find momentum operators : 161, and 161 for dense gradients."
TEST(ComputeFusion, OneHundredAndSixtyOneMomentumOperators) {
  const Workload resnet = architecture("resnet50");
  const auto match = match_of(resnet, &ComputeFusion::fuse_all_optimizer_ops);
  EXPECT_EQ(match.detail,
            "found 161 momentum operators, and 161 for dense gradients; they become one");
  const auto fused = fused_by(resnet, &ComputeFusion::fuse_all_optimizer_ops);
  EXPECT_EQ(count_of(fused, "momentum"), 0);
  ASSERT_EQ(count_of(fused, "fused_momentum"), 1);
  // The bytes are what they were: 20 an element.
  EXPECT_DOUBLE_EQ(traffic(fused, fused.operators.back()), 20.0 * 25557032);
  EXPECT_EQ(fused.operators.back().kernels, 1);
}

TEST(ComputeFusion, TheOptimiserNeedsDenseGradientsOfOneDtype) {
  Workload resnet = architecture("resnet50");
  resnet.tensors[3].sparse = true;
  EXPECT_EQ(match_of(resnet, &ComputeFusion::fuse_all_optimizer_ops).detail,
            "found 161 momentum operators, and 160 for dense gradients; they become one");
  EXPECT_EQ(count_of(fused_by(resnet, &ComputeFusion::fuse_all_optimizer_ops), "momentum"), 1);

  const Workload half = architecture("resnet50", amp(Layout::kNchw));
  const auto match = match_of(half, &ComputeFusion::fuse_all_optimizer_ops);
  EXPECT_TRUE(test::contains(match.detail, "none is fused: the gradients are of several dtypes"))
      << match.detail;
  EXPECT_EQ(count_of(fuse_operators(half, everything()).operators, "momentum"), 161);
}

// Counted by hand: 33 of the 53 batch norms have their own relu (the first, and two in each of 16
// blocks), 16 end a block, and 4 stand in the shortcuts.
TEST(ComputeFusion, BatchNormFormsNeedHalfPrecisionAndChannelsLast) {
  for (const DType dtype : {DType::kFp32, DType::kFp16, DType::kBf16}) {
    for (const Layout layout : {Layout::kNchw, Layout::kNhwc}) {
      const Workload resnet = architecture("resnet50", amp(layout, dtype));
      const bool fits = dtype == DType::kFp16 && layout == Layout::kNhwc;
      expect_match(match_of(resnet, &ComputeFusion::fuse_bn_act_ops), fits ? 33 : 0, fits ? 33 : 0);
      expect_match(match_of(resnet, &ComputeFusion::fuse_bn_add_act_ops), fits ? 16 : 0,
                   fits ? 16 : 0);
      if (fits) continue;
      EXPECT_TRUE(test::contains(match_of(resnet, &ComputeFusion::fuse_bn_act_ops).detail,
                                 "FP16 and NHWC"));
    }
  }
}

// In Paddle's order the batch-norm form takes the sums before fuse_elewise_add_act_ops sees them.
TEST(ComputeFusion, EarlierPassesTakeWhatLaterOnesCouldHave) {
  const Workload resnet = architecture("resnet50", amp(Layout::kNhwc));
  ComputeFusion fusion = batch_norm_forms();
  fusion.fuse_elewise_add_act_ops = true;
  const auto fused = fuse_operators(resnet, fusion);
  ASSERT_EQ(fused.matches.size(), 3u);
  for (std::size_t i = 0; const int found : {33, 16, 0})
    expect_match(fused.matches[i++], found, found);
  EXPECT_EQ(count_of(fused.operators, "relu"), 0);
  EXPECT_EQ(count_of(fused.operators, "batch_norm"), 4);
  fusion.fuse_bn_add_act_ops = false;
  expect_match(fuse_operators(resnet, fusion).matches[1], 16, 16);
}

TEST(ComputeFusion, ResNetHasNoDepthwiseConvolution) {
  const auto match = match_of(architecture("resnet50"), &ComputeFusion::fuse_relu_depthwise_conv);
  expect_match(match, 0, 0);
  EXPECT_EQ(match.detail, "the workload has no depthwise_conv2d");
}

// VGG-16 in Paddle: each of 13 convolutions and 2 hidden layers ends in bias and relu. With the
// epilogue before it the hidden layers go into their products, and the head's bias as well.
TEST(ComputeFusion, Vgg16) {
  const Workload vgg = architecture("vgg16");
  expect_match(match_of(vgg, &ComputeFusion::fuse_elewise_add_act_ops), 15, 15);
  expect_match(match_of(vgg, &ComputeFusion::fuse_gemm_epilogue), 3, 3);
  ComputeFusion both = only(&ComputeFusion::fuse_gemm_epilogue);
  both.fuse_elewise_add_act_ops = true;
  const auto fused = fuse_operators(vgg, both);
  expect_match(fused.matches[0], 3, 3);
  // Dropout stands between a hidden layer and the next product, so the gradient of its relu stays
  // outside the product's, and the convolutions' pairs are left with those two.
  expect_match(fused.matches[1], 13, 13);
  EXPECT_EQ(count_of(fused.operators, "relu"), 0);
}

// Each BERT layer has six products with bias, and gelu behind the fifth; the pooler is one more,
// whose tanh cublasLt does not know.
TEST(ComputeFusion, BertsEpilogues) {
  operators::ArchitectureOptions options;
  options.sequence = 64;
  const Workload bert = architecture("bert_base", options);
  expect_match(match_of(bert, &ComputeFusion::fuse_gemm_epilogue), 73, 73);
  const auto fused = fused_by(bert, &ComputeFusion::fuse_gemm_epilogue);
  EXPECT_EQ(count_of(fused, "gelu"), 0);
  // The next product's gradient does gelu's as well.
  EXPECT_EQ(count_of(fused, "gelu_grad"), 0);
  EXPECT_EQ(count_of(fused, "tanh"), 1);
  EXPECT_EQ(count_of(fused, "matmul_v2"), 24);  // scores and values have no weight
  EXPECT_EQ(count_of(fused, "fused_gemm_epilogue"), 73);
  EXPECT_EQ(count_of(fused, "fused_gemm_epilogue_grad"), 73);
  // The sums that remain: bias and tanh of the pooler forward; tanh has no backward form.
  expect_match(match_of(bert, &ComputeFusion::fuse_elewise_add_act_ops), 1, 0);
  EXPECT_EQ(
      match_of(architecture("gpt2_small", options), &ComputeFusion::fuse_gemm_epilogue).forward,
      48);
}

// cublasLt keeps relu's mask in units of 128 columns, gelu's input in units of 8.
TEST(ComputeFusion, EpilogueActivationsNeedRoundColumns) {
  struct Case {
    const char* act;
    std::int64_t columns;
    bool fused;
  };
  for (const Case& one : {Case{"relu", 128, true}, Case{"relu", 192, false}, Case{"relu", 8, false},
                          Case{"gelu", 8, true}, Case{"gelu", 192, true}, Case{"gelu", 12, false},
                          Case{"tanh", 128, false}}) {
    Workload workload = of_values(6, 4096);
    auto& list = workload.operators.edit();
    list.values[2].bytes = 32;
    Operator product{"matmul_v2", StepPart::kForward, {{0}, {1}}, {{3}}};
    product.columns = one.columns;
    list.operators = {product,
                      {"elementwise_add", StepPart::kForward, {{3}, {2}}, {{4}}},
                      {one.act, StepPart::kForward, {{4}}, {{5}}}};
    const auto fused = fuse_operators(workload, only(&ComputeFusion::fuse_gemm_epilogue));
    expect_match(fused.matches.front(), 1, 0);
    EXPECT_EQ(fused.operators.operators.size(), one.fused ? 1u : 2u) << one.act << one.columns;
  }
}

// A residual sum is no bias, and a product of two activations is no linear layer.
TEST(ComputeFusion, EpilogueTakesBiasesAfterWeightsOnly) {
  Workload workload = of_values(5, 4096);
  auto& list = workload.operators.edit();
  Operator product{"matmul_v2", StepPart::kForward, {{0}, {1}}, {{3}}};
  product.columns = 128;
  list.operators = {product, {"elementwise_add", StepPart::kForward, {{3}, {2}}, {{4}}}};
  expect_match(match_of(workload, &ComputeFusion::fuse_gemm_epilogue), 0, 0);
  list.values[2].bytes = 64;
  expect_match(match_of(workload, &ComputeFusion::fuse_gemm_epilogue), 1, 0);
  list.operators[0].columns = 0;
  expect_match(match_of(workload, &ComputeFusion::fuse_gemm_epilogue), 0, 0);
}

// An intermediate that someone else reads stays out of every pattern.
TEST(ComputeFusion, IntermediatesAreReadOnlyByThePattern) {
  for (const bool shared : {false, true}) {
    Workload workload = of_values(6, 1024,
                                  {{"elementwise_add", StepPart::kForward, {{0}, {1}}, {{2}}},
                                   {"relu", StepPart::kForward, {{2}}, {{3}}}});
    const Operator other{"pool2d", StepPart::kForward, {{2}}, {{4}}};
    if (shared) workload.operators.edit().operators.push_back(other);
    expect_match(match_of(workload, &ComputeFusion::fuse_elewise_add_act_ops), shared ? 0 : 1, 0);
  }
  // relu before the sum as well: the first of the pass's four patterns.
  const Workload workload = of_values(4, 1024,
                                      {{"relu", StepPart::kForward, {{0}}, {{1}}},
                                       {"elementwise_add", StepPart::kForward, {{1}, {2}}, {{3}}}});
  expect_match(match_of(workload, &ComputeFusion::fuse_elewise_add_act_ops), 1, 0);
}

// relu into a depthwise convolution: 4 kernels become 2, and the relu's output is gone.
TEST(ComputeFusion, ReluGoesIntoADepthwiseConvolution) {
  Workload workload = of_values(9, 1000);
  auto& list = workload.operators.edit();
  enum { kX, kRelu, kW, kY, kDy, kDrelu, kDw, kDx };
  list.operators = {
      {"relu", StepPart::kForward, {{kX}}, {{kRelu}}},
      {"depthwise_conv2d", StepPart::kForward, {{kRelu}, {kW}}, {{kY}}},
      {"depthwise_conv2d_grad", StepPart::kBackward, {{kRelu}, {kW}, {kDy}}, {{kDrelu}, {kDw}}},
      {"relu_grad", StepPart::kBackward, {{kRelu}, {kDrelu}}, {{kDx}}}};
  const auto fused = fuse_operators(workload, only(&ComputeFusion::fuse_relu_depthwise_conv));
  expect_match(fused.matches.front(), 1, 1);
  ASSERT_EQ(fused.operators.operators.size(), 2u);
  EXPECT_DOUBLE_EQ(traffic(fused.operators, fused.operators.operators[0]), 3000);  // x, w, y
  EXPECT_DOUBLE_EQ(traffic(fused.operators, fused.operators.operators[1]),
                   5000);  // x, w, dy, dw, dx
  // With one more reader of the relu's output nothing is folded.
  list.operators.insert(list.operators.begin() + 2,
                        {"pool2d", StepPart::kForward, {{kRelu}}, {{8}}});
  expect_match(match_of(workload, &ComputeFusion::fuse_relu_depthwise_conv), 0, 0);
}

// Bytes an element as in a table of fused kernels, 2-byte types: batch norm with relu 10 -> 6, with
// a sum as well 16 -> 8; backward 16 -> 14 with the output read in both passes.
TEST(ComputeFusion, SavesWhatFusedKernelsSave) {
  struct Case {
    std::vector<Operator> operators;
    double apart, fused;
  };
  using enum StepPart;
  for (Case& each : std::vector<Case>{
           {{{"batch_norm", kForward, {{0, 2}}, {{1}}}, {"relu", kForward, {{1}}, {{2}}}}, 10, 6},
           {{{"batch_norm", kForward, {{0, 2}}, {{1}}},
             {"elementwise_add", kForward, {{1}, {2}}, {{3}}},
             {"relu", kForward, {{3}}, {{4}}}},
            16,
            8},
           {{{"relu_grad", kBackward, {{0}, {1}}, {{2}}},
             {"batch_norm_grad", kBackward, {{3, 2}, {2, 2}}, {{4}}}},
            16,
            14}}) {
    for (auto& op : each.operators) {
      op.dtype = DType::kFp16;
      op.layout = Layout::kNhwc;
    }
    const Workload workload = of_values(8, 2, each.operators);
    EXPECT_DOUBLE_EQ(all_traffic(fuse_operators(workload, {}).operators), each.apart);
    EXPECT_DOUBLE_EQ(all_traffic(fuse_operators(workload, batch_norm_forms()).operators),
                     each.fused);
  }
}

// A sum with its relu saves a write and a read of the sum in each direction, and nothing else.
TEST(ComputeFusion, ResidualSumsSaveTwoPassesEach) {
  operators::ArchitectureOptions options;
  options.batch = 4;
  const Workload resnet = architecture("resnet50", options);
  double elements = 0;  // of the 16 sums
  for (const int size : {56, 56, 56, 28, 28, 28, 28, 14, 14, 14, 14, 14, 14, 7, 7, 7}) {
    elements += 4.0 * size * size * 256 * (56.0 / size);
  }
  const auto fused = fused_by(resnet, &ComputeFusion::fuse_elewise_add_act_ops);
  // Backward the sum's gradient took over relu's: now it is written, so a read is all that is
  // saved.
  EXPECT_NEAR(all_traffic(resnet.operators) - all_traffic(fused), 4 * elements * (2 + 1), 1);
}

// What is true of every architecture and every set of switches: the work stays, no
// traffic and no kernel is added, every gradient is still written, and each operator comes behind
// those whose values it reads.
TEST(ComputeFusion, EveryRewriteKeepsTheWorkAndTheGradients) {
  for (const auto& row : operators::architectures()) {
    if (row.name == "bert_large") continue;  // BERT-base twice
    for (const bool half : {false, true}) {
      operators::ArchitectureOptions options =
          half ? amp(Layout::kNhwc) : operators::ArchitectureOptions{};
      options.batch = 2;
      options.sequence = 32;
      const Workload workload = architecture(row.name, options);
      for (unsigned mask = 0; mask < 64; mask += 9) {
        const std::bitset<6> on(mask);
        const ComputeFusion fusion{on[0], on[1], on[2], on[3], on[4], on[5]};
        const OperatorList& before = workload.operators;
        const OperatorList after = fuse_operators(workload, fusion).operators;
        for (const auto part : {StepPart::kForward, StepPart::kBackward, StepPart::kUpdate}) {
          EXPECT_NEAR(flops_of(after, part), flops_of(before, part), 1e-9 * flops_of(before, part));
        }
        EXPECT_LE(all_traffic(after), all_traffic(before) * (1 + 1e-12));
        EXPECT_LE(after.operators.size(), before.operators.size());
        std::set<int> originally, written;
        for (const auto& op : before.operators) {
          for (const auto& output : op.outputs) originally.insert(output.value);
        }
        for (const auto& op : after.operators) {
          for (const auto& input : op.inputs) {
            EXPECT_TRUE(written.contains(input.value) || !originally.contains(input.value));
          }
          for (const auto& output : op.outputs) EXPECT_TRUE(written.insert(output.value).second);
        }
        for (const int gradient : after.gradients) EXPECT_TRUE(written.contains(gradient));
      }
    }
  }
}

// --- Times ------------------------------------------------------------------------------------

TEST(ComputeFusion, ChangesTheTimesOfAnEvaluatedWorkload) {
  const Device device = test::small_gpu();
  const Workload resnet = test::evaluated(architecture("resnet50", amp(Layout::kNhwc)), device);
  EXPECT_FALSE(fused_workload(resnet, device, {}).has_value());
  const ComputeFusion fusion = batch_norm_forms();
  const auto fused = fused_workload(resnet, device, fusion);
  ASSERT_TRUE(fused.has_value());
  EXPECT_TRUE(fused->operators->empty());
  const operators::StepTimes exact =
      operators::evaluate_operators(fuse_operators(resnet, fusion).operators, device);
  EXPECT_NEAR(fused->forward, exact.forward, 1e-12);
  EXPECT_NEAR(backward_time(*fused),
              std::accumulate(exact.backward.begin(), exact.backward.end(), 0.0), 1e-12);
  EXPECT_NEAR(fused->update, exact.update, 1e-12);
  EXPECT_LT(fused->forward, resnet.forward);
  EXPECT_LT(backward_time(*fused), backward_time(resnet));
}

// Times that were measured stay the base: they change by what the roofline predicts.
TEST(ComputeFusion, MeasuredTimesChangeByTheEvaluatedDifference) {
  const Device device = test::small_gpu();
  const Workload model = test::evaluated(architecture("resnet50", amp(Layout::kNhwc)), device);
  Workload measured = model;
  measured.forward = 0.5;
  measured.update = 0.1;
  for (auto& tensor : measured.tensors) tensor.backward = 0.003;
  const ComputeFusion fusion = batch_norm_forms();
  const auto a = fused_workload(model, device, fusion);
  const auto b = fused_workload(measured, device, fusion);
  EXPECT_NEAR(measured.forward - b->forward, model.forward - a->forward, 1e-12);
  EXPECT_NEAR(backward_time(measured) - backward_time(*b), backward_time(model) - backward_time(*a),
              1e-12);
}

// Where hardly anything was measured, times stop at zero and the sum of the savings is kept.
TEST(ComputeFusion, NoTimeFallsBelowZero) {
  const Device device = test::small_gpu();
  Workload tiny = architecture("resnet50", amp(Layout::kNhwc));
  tiny.forward = 1e-9;
  for (auto& tensor : tiny.tensors) tensor.backward = 1e-9;
  const auto fused = fused_workload(tiny, device, everything());
  EXPECT_GE(fused->forward, 0);
  for (const auto& tensor : fused->tensors) EXPECT_GE(tensor.backward, 0);
}

TEST(ComputeFusion, ThePlannerTakesTheFusedTimes) {
  Cluster cluster;
  cluster.device = test::small_gpu();
  const Workload resnet =
      test::evaluated(architecture("resnet50", amp(Layout::kNhwc)), cluster.device);
  const auto computing = [&](const ComputeFusion& fusion) {
    Strategy strategy;
    strategy.compute_fusion = fusion;
    Seconds sum = 0;
    for (const auto& op : make_plan(resnet, cluster, strategy).ops) sum += seconds_of(op.work);
    return sum;
  };
  const Seconds before = computing({});
  EXPECT_NEAR(before, resnet.forward + backward_time(resnet) + resnet.update, 1e-12);
  EXPECT_LT(computing(only(&ComputeFusion::fuse_bn_act_ops)), 0.99 * before);
}

// On one GPU the update's launches are hidden as long as the host is ahead; fusing them saves what
// stands out, not 161 launches.
TEST(ComputeFusion, TheFusedOptimiserSavesAtMostItsLaunches) {
  Device device = test::small_gpu();
  const Workload resnet = architecture("resnet50", amp(Layout::kNchw, DType::kFp32));
  const auto update = [&](bool fused) {
    const OperatorList list =
        fused ? fused_by(resnet, &ComputeFusion::fuse_all_optimizer_ops) : *resnet.operators;
    return operators::evaluate_operators(list, device).update;
  };
  const Seconds saved = update(false) - update(true);
  EXPECT_GT(saved, 0);
  EXPECT_LE(saved, 160 * (device.launch + device.kernel_gap) + 1e-9);
  device.launch = 0;
  device.kernel_gap = 0;
  EXPECT_NEAR(update(false), update(true), 1e-9);
}

TEST(ComputeFusion, NotesSayWhatMatchedAndWhatItSaves) {
  const Device device = test::small_gpu();
  const Workload resnet = test::evaluated(architecture("resnet50"), device);
  const auto notes = fusion_notes(resnet, device, everything(), {});
  for (const char* part :
       {"fuse_elewise_add_act_ops: detected 16 subgraphs forward and 16 backward",
        "found 161 momentum operators, and 161 for dense gradients",
        "fuse_bn_act_ops matches nothing here: it needs FP16 and NHWC, and batch_norm runs in fp32 "
        "NCHW",
        "kernels become"}) {
    EXPECT_TRUE(test::any_contains(notes, part)) << part;
  }
  // A switch that is on by default says nothing where it matches nothing.
  EXPECT_TRUE(fusion_notes(resnet, device, only(&ComputeFusion::fuse_bn_add_act_ops),
                           {"fuse_bn_add_act_ops"})
                  .empty());
}

}  // namespace
}  // namespace syncline::plan
