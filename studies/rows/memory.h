// Memory that a strategy needs on the fullest rank, at the fullest moment of a step: sums of bytes
// per parameter, as ZeRO's and Megatron's authors count them. Memory of the framework, its
// libraries and the allocator is not counted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/job.h"
#include "formats/scenario/scenario.h"

namespace syncline::measure {

// Largest ratio of device memory in use to counted memory: 19 layouts of Megatron on 8 B200
// (tests/measure/whole_memory_test.cc) took 2 to 9 % more.
inline constexpr double kUncounted = 1.09;

struct Memory {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double buffers = 0;
  double activations = -1;  // negative: not counted
  double available = 0;     // the device's; 0: unknown
  double on_host = 0;       // the optimizer's, in the host's memory
  int stage = -1;           // pipeline stage of the rank; -1: the model is not partitioned
  Workload::Recompute recompute = Workload::Recompute::kNone;  // for the activations

  double states() const { return weights + gradients + optimizer + buffers; }
  bool counts_activations() const { return activations >= 0; }
  double total() const { return states() + (counts_activations() ? activations : 0); }
  // Returns true if the total, including activations if counted, fits.
  bool fits() const;
  // Returns true if it fits only without what is not counted.
  bool may_not_fit() const { return fits() && available > 0 && total() * kUncounted > available; }
};

// Returns GB (10^9 bytes, as devices are sold) in three digits: "32.1", "1230".
std::string gigabytes(double bytes);

// Returns the memory of the stage that needs most.
Memory memory_of(const Scenario& scenario, const Strategy& strategy);

// Returns the memory of a rank per stage of the pipeline; one without a pipeline.
std::vector<Memory> memory_by_stage(const Scenario& scenario, const Strategy& strategy);

// Returns "does not fit: " and the memory needs of a strategy; nullopt if it fits.
std::optional<std::string> memory_uncertainty(const Scenario& scenario, const Strategy& strategy);

// Returns "with Adam needs 214 GB per GPU, 53.8 of them activations, A100 has 40 GB".
std::string memory_needs(const Scenario& scenario, const Memory& memory);

// Returns the assumed bytes of the loss's copies of logits; nullopt if no loss over words is
// computed by operators.
std::optional<std::string> loss_words(const Scenario& scenario, const Strategy& strategy);

}  // namespace syncline::measure
