// The patterns of Paddle's fusion passes, one function a pass. Each rewrites the graph and counts
// the subgraphs that it found, forward and backward.
#pragma once

#include "core/job.h"
#include "core/plan/compute_fusion.h"
#include "core/plan/operator_graph.h"

namespace syncline::plan {

// relu + depthwise_conv2d: the convolution applies the relu as it reads, in both directions.
FusionMatch fuse_relu_depthwise_conv(OperatorGraph& graph, const Workload& workload);

// batch_norm + relu, and batch_norm + elementwise_add + relu: cuDNN's fused kernels, which exist
// in fp16 with channels last only.
FusionMatch fuse_bn_act(OperatorGraph& graph, const Workload& workload);
FusionMatch fuse_bn_add_act(OperatorGraph& graph, const Workload& workload);

// elementwise_add with relu, scale or tanh before or behind it; backward with relu's gradient only.
FusionMatch fuse_elewise_add_act(OperatorGraph& graph, const Workload& workload);

// Returns a product with a weight, its bias and, where the columns allow it, relu or gelu
// (cublasLt); backward the bias's gradient and that of an activation fused before. relu's mask for
// the backward pass, a bit an element, is left out of the traffic.
FusionMatch fuse_gemm_epilogue(OperatorGraph& graph, const Workload& workload);

// All update operators of one kind become one, if their gradients are dense and of one dtype and
// none reads what another writes. Says what it found.
FusionMatch fuse_all_optimizers(OperatorGraph& graph, const Workload& workload);

}  // namespace syncline::plan
