// A DGC step with the selection of Paddle's DGC instead of the exact one: a threshold sampled from
// a few windows of the residual, and what lies above it in the order in which Paddle's threads take
// it. kernels/reference/dgc.h states the rules and is the same on the host, to the bit. For
// comparison: it sends what the framework sends, surplus, shortage and all.
//
// 28 bytes an element (R g u v, W u v; then v to count and v to send), four launches for all
// tensors. Paddle's own takes 44 and ten launches a tensor. What is sent is in no order of indices:
// sparse_apply takes it with `rising` off.
#pragma once

#include "kernels/dgc_step.h"

namespace syncline::kernels {

constexpr std::uint32_t kSampleWindows = 16;  // at most, of a tensor
constexpr std::uint32_t kSampleBlocks = 128;  // at most, of a tensor

struct SampledRow {
  std::uint32_t rank;    // from the top, in each window
  std::uint32_t window;  // elements
  std::uint32_t windows;
  std::uint32_t stride;  // from one window to the next
  std::uint32_t blocks;  // of 256 threads, that the elements are dealt out to
};

struct SampledTables {
  float* samples;               // kSampleWindows a tensor
  float* thresholds;            // of each tensor
  std::uint32_t* block_counts;  // kSampleBlocks a tensor
  std::uint32_t* offsets;       // of each thread: kSampleBlocks * 256 a tensor
};

struct SampledPlan {
  std::size_t tensors = 0;
  std::size_t workspace_bytes = 0;
};

// Refuses tensors that the library refuses or fails at: under 16384 elements, kept under 2.
Status sampled_plan(const DgcPlan& plan, SampledPlan* sampled);
SampledTables sampled_tables(const SampledPlan& sampled, void* base);

// `plan` is prepared; `workspace` (on the device, sampled.workspace_bytes, a multiple of 256) keeps
// nothing from step to step. Reports and messages as dgc_step's, but for the value of pads, -1, and
// that pads stand among pairs; report.threshold has the bits of the sampled threshold.
Status sampled_step(const DgcPlan& plan, const SampledPlan& sampled, void* workspace,
                    const DgcStep& step, cudaStream_t stream);

}  // namespace syncline::kernels
