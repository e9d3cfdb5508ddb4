// One step of Deep Gradient Compression (Lin et al., ICLR 2018) for all tensors of a plan:
//
//   s  = coefficient * scale                      (local clipping; scale: Paddle's number of ranks)
//   g' = s g + decay w
//   u' = m u + g'          v' = v + u'            (momentum correction and accumulation)
//   u' = m (u + g')        v' = (v + u') + g'     (Nesterov)
//   S  = the min(kept, n) largest |v'|, ties to the lower index
//   sent: (i, v'_i) for i in S, in index order;   u' and v' become 0 there (momentum factor
//   masking)
//
// in fp32, every operation rounded by itself in the order written; kernels/reference/dgc.h is
// the same on the host and agrees to the bit. Equal inputs give equal bits, in every run, on every
// path of the selection.
//
// The selection, bytes an element for fp32 gradients (bf16 and fp16: 2 less; weight decay: 4 more):
//   speculative  20   R g u v, W u v. Elements of at least 0.95 x the last step's threshold are
//                     listed on the way; holds if kept <= listed <= room in the list
//   exact        24   the update counts a histogram of magnitudes, then v is read again to list
//   recount      28   the guess was too high: v is read once more to count
//   whole        36   too many candidates (ties; more than one in 32 kept): v is its own list,
//                     read four times
// plus about 0.04 for the lists and 0.07 for what is sent at kept = n / 1000. Which one it is, the
// device decides for each tensor by itself; no host waits. A launch that has nothing to do ends
// at once.
//
// Floors on an H200 at 4.8 TB/s, microseconds for 25.5 M, 110 M and 340 M elements: speculative
// 106, 458, 1417; exact 128, 550, 1700. Seven launches for any number of tensors.
//
// What is not finite. Where *skip is not 0 (a gradient has a NaN or an infinity, which `pack` finds
// out where it measures them) the step changes no u and no v, and sends nothing but pads. Otherwise
// an element whose v' would not be finite keeps its old u and v, and the report's `held` says that
// there was one; a v that is NaN or infinite is never sent. So nothing not finite ever enters the
// state or a message.
#pragma once

#include "kernels/dgc_plan.h"

namespace syncline::kernels {

struct DgcStep {
  float momentum = 0.9f;
  float scale = 1.0f;
  float weight_decay = 0.0f;  // not 0: all tensors of the plan need weights
  bool nesterov = false;
  const float* coefficients = nullptr;  // on the device, one a tensor; null: 1
  const std::int32_t* skip = nullptr;   // on the device; null: never

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
