// The sparse update of DGC: applies every rank's (index, value) lists to the weights without a
// dense gradient, w_i = w_i - rate v for each pair, in rank order, product and difference rounded
// separately, in fp32; kernels/reference/optimizers.h is the same on the host. A pair moves 72
// bytes. Lists are checked first: one bad index or value sets *rejected, and then no weight
// changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/host_device.h"

namespace syncline::kernels {

struct SparseTensor {
  float* weight = nullptr;
  std::int64_t elements = 0;  // 0 .. 2^32 - 1
  std::int64_t places = 0;    // pairs per rank, with pads: min(kept, elements) of dgc_step
};

struct SparsePlan {
  std::vector<SparseTensor> tensors;
  std::int64_t parts = 0;
  std::int64_t checks = 0;
  std::int64_t packed = 0;  // sum of places
  std::size_t workspace_bytes = 0;
  void* workspace = nullptr;  // set by sparse_prepare
};

struct SparseApply {
  int ranks = 0;
  const std::uint32_t* indices = nullptr;  // rank r's begin at r * rank_stride
  const float* values = nullptr;           // values at the same offsets
  std::int64_t rank_stride = 0;            // elements, at least the plan's `packed`
  float rate = 0;
  std::uint32_t* rejected = nullptr;  // on the device: 0, or 1 if a list was refused
};

Status sparse_plan(const std::vector<SparseTensor>& tensors, SparsePlan* plan);

// Writes the tables into `workspace`, on the device, at a multiple of 256 bytes. Required once for
// a list of tensors.
Status sparse_prepare(SparsePlan* plan, void* workspace, cudaStream_t stream);

Status sparse_apply(const SparsePlan& plan, const SparseApply& apply, cudaStream_t stream);

}  // namespace syncline::kernels
