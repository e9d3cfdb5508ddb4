// The patterns of Paddle's fusion passes, one function per pass. Each rewrites the graph and counts
// the matched subgraphs, forward and backward.
#pragma once

#include "core/job.h"
#include "core/plan/compute_fusion.h"
#include "core/plan/operator_graph.h"

namespace syncline::plan {

// Fuses relu + depthwise_conv2d: the convolution applies the relu as it reads, in both directions.
FusionMatch fuse_relu_depthwise_conv(OperatorGraph& graph, const Workload& workload);

// Fuses batch_norm + relu, and batch_norm + elementwise_add + relu: cuDNN's fused kernels, which
// exist in fp16 with channels last only.
FusionMatch fuse_bn_act(OperatorGraph& graph, const Workload& workload);
FusionMatch fuse_bn_add_act(OperatorGraph& graph, const Workload& workload);

// Fuses elementwise_add with relu, scale or tanh before or after it; backward only with relu_grad.
FusionMatch fuse_elewise_add_act(OperatorGraph& graph, const Workload& workload);

// Fuses a product with a weight, its bias and, if the columns allow it, relu or gelu (cublasLt);
// backward the bias's gradient and that of an activation fused before. The traffic omits relu's
// mask for the backward pass, one bit per element.
FusionMatch fuse_gemm_epilogue(OperatorGraph& graph, const Workload& workload);

// Fuses all update operators of one kind, if their gradients are dense and of one dtype and none
// reads another's output. Describes the result.
FusionMatch fuse_all_optimizers(OperatorGraph& graph, const Workload& workload);

}  // namespace syncline::plan
