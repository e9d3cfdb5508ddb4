// The roofline (core/operators/evaluate.h) predicts the list before and after; a workload's times
// change by the difference. So fusion counts from measured times.
#include "core/plan/compute_fusion.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/plan/fusion_patterns.h"

namespace syncline::plan {
namespace {

std::string count_text(int forward, int backward) {
  return "detected " + std::to_string(forward) +
         (forward == 1 ? " subgraph forward and " : " subgraphs forward and ") +
         std::to_string(backward) + " backward";
}

std::string milliseconds(Seconds seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", seconds / kMillisecond);
  return text;
}

bool has(const OperatorList& list, const std::string& kind) { return count_of(list, kind) > 0; }

// Returns why a batch-norm form has no match.
std::string batch_norm_reason(const OperatorList& list) {
  if (!has(list, "batch_norm")) return "no batch_norm left to match";
  for (const auto& op : list.operators) {
    if (op.kind != "batch_norm") continue;
    if (op.dtype == DType::kFp16 && op.layout == Layout::kNhwc) continue;
    return "it needs FP16 and NHWC, and batch_norm runs in " + to_string(op.dtype) +
           (op.layout == Layout::kNhwc ? " NHWC" : " NCHW");
  }
  return "no batch_norm is followed by the operators that it needs";
}

Seconds changed(Seconds given, Seconds before, Seconds after) {
  return std::max(0.0, given + (after - before));
}

int launches(const OperatorList& list) {
  int sum = 0;
  for (const auto& op : list.operators) sum += op.kernels;
  return sum;
}

double bytes_moved(const OperatorList& list) {
  double sum = 0;
  for (const auto& op : list.operators) sum += traffic(list, op);
  return sum;
}

// Returns the costs of both lists.
std::pair<operators::StepTimes, operators::StepTimes> costs(const Workload& workload,
                                                            const OperatorList& fused,
                                                            const Device& device) {
  return {operators::evaluate_operators(workload.operators, device),
          operators::evaluate_operators(fused, device)};
}

// A switch with its pass, and the reason if that has no match.
struct Switch {
  const char* knob;
  bool ComputeFusion::*on;
  FusionMatch (*fuse)(OperatorGraph&, const Workload&);
  std::string (*nothing)(const OperatorList&);
};

// Passes in Paddle's order: an operator that one has fused is unavailable to the next, so the order
// is part of the result.
constexpr Switch kSwitches[] = {
    {"fuse_relu_depthwise_conv", &ComputeFusion::fuse_relu_depthwise_conv, fuse_relu_depthwise_conv,
     [](const OperatorList& list) -> std::string {
       return has(list, "depthwise_conv2d") ? "no relu is read by depthwise_conv2d alone"
                                            : "the workload has no depthwise_conv2d";
     }},
    {"fuse_bn_act_ops", &ComputeFusion::fuse_bn_act_ops, fuse_bn_act, batch_norm_reason},
    {"fuse_bn_add_act_ops", &ComputeFusion::fuse_bn_add_act_ops, fuse_bn_add_act,
     batch_norm_reason},
    {"fuse_gemm_epilogue", &ComputeFusion::fuse_gemm_epilogue, fuse_gemm_epilogue,
     [](const OperatorList&) -> std::string {
       return "no matmul_v2 with a weight is followed by a bias";
     }},
    {"fuse_elewise_add_act_ops", &ComputeFusion::fuse_elewise_add_act_ops, fuse_elewise_add_act,
     [](const OperatorList&) -> std::string {
       return "no elementwise_add is left next to relu, scale or tanh";
     }},
    {"fuse_all_optimizer_ops", &ComputeFusion::fuse_all_optimizer_ops, fuse_all_optimizers,
     nullptr}};

}  // namespace

bool any(const ComputeFusion& fusion) {
  return std::ranges::any_of(kSwitches, [&](const Switch& each) { return fusion.*each.on; });
}

FusedOperators fuse_operators(const Workload& workload, const ComputeFusion& fusion) {
  FusedOperators result;
  OperatorGraph graph(workload.operators);
  for (const Switch& each : kSwitches) {
    if (!(fusion.*each.on)) continue;
    FusionMatch& match = result.matches.emplace_back(each.fuse(graph, workload));
    match.knob = each.knob;
    const bool none = match.forward + match.backward == 0;
    if (none && each.nothing != nullptr) match.detail = each.nothing(workload.operators);
  }
  result.operators = std::move(graph).finish();
  return result;
}

std::optional<Workload> fused_workload(const Workload& workload, const Device& device,
                                       const ComputeFusion& fusion) {
  if (workload.operators->empty() || !any(fusion)) return std::nullopt;
  const FusedOperators fused = fuse_operators(workload, fusion);
  const auto [before, after] = costs(workload, fused.operators, device);
  Workload result;
  result.name = workload.name;
  result.source = workload.source;
  result.framework_version = workload.framework_version;
  result.batch = workload.batch;
  result.micro_batches = workload.micro_batches;
  result.forward = changed(workload.forward, before.forward, after.forward);
  result.update = changed(workload.update, before.update, after.update);
  result.tensors = workload.tensors;
  result.buffers = workload.buffers;
  // If fusion saves more than a measured wait, the next waits shrink by the rest.
  Seconds owed = 0;
  for (std::size_t i = 0; i < result.tensors.size(); ++i) {
    const Seconds wait =
        workload.tensors[i].backward + (after.backward[i] - before.backward[i]) - owed;
    result.tensors[i].backward = std::max(0.0, wait);
    owed = std::max(0.0, -wait);
  }
  return result;
}

std::vector<std::string> fusion_notes(const Workload& workload, const Device& device,
                                      const ComputeFusion& fusion,
                                      const std::vector<std::string>& silent) {
  std::vector<std::string> notes;
  if (!any(fusion) || workload.operators->empty()) return notes;
  const FusedOperators fused = fuse_operators(workload, fusion);
  for (const auto& found : fused.matches) {
    const bool nothing = found.forward + found.backward == 0;
    if (nothing && std::ranges::find(silent, found.knob) != silent.end()) continue;
    if (found.knob == "fuse_all_optimizer_ops") {
      notes.push_back(found.knob + ": " + found.detail);
    } else if (nothing) {
      notes.push_back(found.knob + " matches nothing here: " + found.detail);
    } else {
      notes.push_back(found.knob + ": " + count_text(found.forward, found.backward));
    }
  }
  if (fused.operators.operators.size() == workload.operators->operators.size()) return notes;
  const auto [before, after] = costs(workload, fused.operators, device);
  const auto fused_times = fused_workload(workload, device, fusion);
  char traffic_text[96];
  std::snprintf(traffic_text, sizeof traffic_text, ", %.2f GB less through memory",
                (bytes_moved(workload.operators) - bytes_moved(fused.operators)) / 1e9);
  notes.push_back(
      "compute fusion: " + std::to_string(launches(workload.operators)) + " kernels become " +
      std::to_string(launches(fused.operators)) + traffic_text + "; forward " +
      milliseconds(workload.forward) + " to " + milliseconds(fused_times->forward) + ", backward " +
      milliseconds(backward_time(workload)) + " to " + milliseconds(backward_time(*fused_times)) +
      ", update " + milliseconds(workload.update) + " to " + milliseconds(fused_times->update));
  if (workload.times_given) {
    notes.push_back(
        "the workload's own times stand; compute fusion changes them by what the roofline predicts "
        "(unfused forward " +
        milliseconds(before.forward) + ", fused " + milliseconds(after.forward) + ")");
  }
  return notes;
}

}  // namespace syncline::plan
