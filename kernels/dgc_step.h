// One step of Deep Gradient Compression (Lin et al., ICLR 2018) for all tensors of a plan: momentum
// correction, the min(kept, n) largest |v'|, ties to the lower index, and their message in index
// order. In fp32, each operation rounded by itself; kernels/reference/optimizers.h is the same on
// the host and agrees to the bit. 20 bytes an element, 24 without a guess; seven launches for all
// tensors.
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
  std::int64_t kept = 0;      // how many are sent; more than there are means all
};

// How the selection of a tensor was found.
enum class DgcPath : std::uint32_t {
  kSpeculative = 1,  // 20 bytes an element: last step's threshold gave the candidates
  kExact = 2,        // 24: the residual is read once more
  kRecount = 3,      // 28: the guess was too high, nothing below it had been counted
  kWhole = 4,        // 36 (28 where all are sent): too many candidates for the list
  kNothing = 5,      // nothing was to be sent
};

struct DgcReport {
  std::uint32_t selected;   // min(kept, elements) but for elements that are not finite
  std::uint32_t held;       // 1: some element would not have been finite and kept its old values
  std::uint32_t threshold;  // bits of a magnitude: all above it was sent, and nothing below
  DgcPath path;
};

// What a step works on, laid out once for a list of tensors.
struct DgcPlan {
  std::vector<DgcTensor> tensors;
  std::uint32_t span_tiles = 1;
  std::int64_t spans = 0;
  std::int64_t tiles = 0;
  std::int64_t listed = 0;  // places of all lists
  std::int64_t packed = 0;  // sum of min(kept, elements): elements of indices and values
  std::size_t workspace_bytes = 0;
  void* workspace = nullptr;  // set by dgc_prepare
};

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

// Fills `plan`. Addresses are at multiples of their elements' size, and tensors do not overlap.
// Refused are more than 2^32 - 1 elements in a tensor, and more of all than one launch takes.
Status dgc_plan(const std::vector<DgcTensor>& tensors, DgcPlan* plan);

// Writes the plan's tables into `workspace` (on the device, plan->workspace_bytes, a multiple of
// 256) and forgets the last thresholds. Once for a list of tensors and their `kept`; again when a
// ramp changes `kept` or memory moves.
Status dgc_prepare(DgcPlan* plan, void* workspace, cudaStream_t stream);

Status dgc_step(const DgcPlan& plan, const DgcStep& step, cudaStream_t stream);

}  // namespace syncline::kernels
