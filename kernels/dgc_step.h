// One step of Deep Gradient Compression (Lin et al., ICLR 2018) for all tensors of a plan: momentum
// correction, the min(kept, n) largest |v'|, ties to the lower index, and their message in index
// order. In fp32, each operation rounded by itself; kernels/reference/optimizers.h is the same on
// the host and agrees to the bit. 20 bytes an element, 24 without a guess; seven launches for all
// tensors.
#pragma once

#include "kernels/dgc_plan.h"

namespace syncline::kernels {

struct DgcStep {
  float momentum = 0.9f;

  // Of each tensor, at the sum of min(kept, elements) of the tensors before it: its indices rising,
  // then pads (kPadIndex, value 0) where fewer were selected.
  std::uint32_t* indices = nullptr;
  float* values = nullptr;
  DgcReport* reports = nullptr;  // one a tensor

  // Candidates are of at least so much of the last threshold; 0: no speculation. More than 1 and
  // nearly 0 force the ways back that speculation has, for tests.
  float candidate_scale = 0.95f;
};

// Writes the plan's tables into `workspace` (on the device, plan->workspace_bytes, a multiple of
// 256) and forgets the last thresholds. Once for a list of tensors and their `kept`; again when a
// ramp changes `kept` or memory moves.
Status dgc_prepare(DgcPlan* plan, void* workspace, cudaStream_t stream);

Status dgc_step(const DgcPlan& plan, const DgcStep& step, cudaStream_t stream);

}  // namespace syncline::kernels
