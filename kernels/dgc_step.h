// One step of Deep Gradient Compression (Lin et al., ICLR 2018) for all tensors of a plan: momentum
// correction, the min(kept, n) largest |v'|, ties to the lower index, and their message in index
// order. fp32, each operation rounded by itself; bits equal kernels/reference/optimizers.h on the
// host. 20 bytes per element, 24 without a guess; seven launches for all tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/host_device.h"

namespace syncline::kernels {

constexpr std::uint32_t kPadIndex = 0xffffffffu;

// One tensor of a step. u and v of the papers are velocity and residual.
struct DgcTensor {
  const float* gradient = nullptr;
  float* velocity = nullptr;  // read and written
  float* residual = nullptr;  // read and written
  std::int64_t elements = 0;  // 0 .. 2^32 - 1
  std::int64_t kept = 0;      // elements to send; more than there are: all
};

// The way that a tensor's selection was found.
enum class DgcPath : std::uint32_t {
  kSpeculative = 1,  // 20 bytes per element: last step's threshold gave the candidates
  kExact = 2,        // 24: the residual is read once more
  kRecount = 3,      // 28: the guess was too high, and elements below it were not counted
  kWhole = 4,        // 36 (28 if all are sent): too many candidates for the list
  kNothing = 5,      // there was no element to send
};

struct DgcReport {
  std::uint32_t selected;   // min(kept, elements), or less if elements are not finite
  std::uint32_t held;       // 1: an element would have become non-finite and kept its old values
  std::uint32_t threshold;  // bits of a magnitude: all above it were sent, none below it
  DgcPath path;
};

// The layout of a step, made once for a list of tensors.
struct DgcPlan {
  std::vector<DgcTensor> tensors;
  std::uint32_t span_tiles = 1;
  std::int64_t spans = 0;
  std::int64_t tiles = 0;
  std::int64_t listed = 0;  // elements of all lists
  std::int64_t packed = 0;  // sum of min(kept, elements): elements of indices and values
  std::size_t workspace_bytes = 0;
  void* workspace = nullptr;  // set by dgc_prepare
};

struct DgcStep {
  float momentum = 0.9f;

  // For each tensor, at the sum of min(kept, elements) of the tensors before it: rising indices,
  // then pads (kPadIndex, value 0) if fewer were selected.
  std::uint32_t* indices = nullptr;
  float* values = nullptr;
  DgcReport* reports = nullptr;  // one per tensor

  // Lower limit of candidates, as a share of the last threshold; 0: no speculation. For tests, more
  // than 1 and nearly 0 force speculation to fail.
  float candidate_scale = 0.95f;
};

// Fills `plan`. Refuses more than 2^32 - 1 elements in a tensor, and more in all than one launch
// takes. Requires addresses at multiples of their elements' size, and tensors that do not overlap.
Status dgc_plan(const std::vector<DgcTensor>& tensors, DgcPlan* plan);

// Writes the plan's tables into `workspace` (on the device, plan->workspace_bytes, at a multiple of
// 256) and forgets the last thresholds. Required once for a list of tensors and their `kept`, and
// again if a ramp changes `kept` or memory moves.
Status dgc_prepare(DgcPlan* plan, void* workspace, cudaStream_t stream);

Status dgc_step(const DgcPlan& plan, const DgcStep& step, cudaStream_t stream);

}  // namespace syncline::kernels
