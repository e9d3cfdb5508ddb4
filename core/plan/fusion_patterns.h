// The patterns of Paddle's fusion passes, one function a pass. Each rewrites the graph and counts
// the subgraphs that it found, forward and backward.
#pragma once

#include <vector>

#include "core/plan/operator_graph.h"
#include "core/scenario/workload.h"

namespace syncline::plan {

struct PatternCount {
  int forward = 0;
  int backward = 0;
};

bool is_in(const std::vector<int>& list, int item);

// relu + depthwise_conv2d: the convolution applies the relu as it reads, in both directions.
PatternCount fuse_relu_depthwise_conv(OperatorGraph& graph);

// batch_norm + relu, and batch_norm + elementwise_add + relu: cuDNN's fused kernels, which exist
// in fp16 with channels last only.
PatternCount fuse_bn_act(OperatorGraph& graph);
PatternCount fuse_bn_add_act(OperatorGraph& graph);

// elementwise_add with relu, scale or tanh before or behind it; backward with relu's gradient only.
PatternCount fuse_elewise_add_act(OperatorGraph& graph);

// A product with a weight, its bias and, where the columns allow it, relu or gelu (cublasLt);
// backward the bias's gradient and that of an activation fused before. relu's mask for the
// backward pass, a bit an element, is left out of the traffic.
PatternCount fuse_gemm_epilogue(OperatorGraph& graph);

// All update operators of one kind become one, if their gradients are dense and of one dtype and
// none reads what another writes.
struct OptimizerFusion {
  std::string kind;  // empty: there is none
  int operators = 0;
  int dense = 0;
  std::string refusal;  // empty: they were fused
};
OptimizerFusion fuse_all_optimizers(OperatorGraph& graph, const Workload& workload);

}  // namespace syncline::plan
