// What a strategy asks of a rank's memory: the rank that holds most, at the fullest moment of a
// step. Sums of bytes a parameter, as ZeRO's and Megatron's authors count them; what the framework,
// its libraries and the allocator take beside that is not counted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/job.h"
#include "formats/scenario/scenario.h"

namespace syncline::measure {

struct Memory {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double buffers = 0;
  double activations = -1;  // negative: not counted
  double available = 0;     // of the device; 0: not known
  int stage = -1;           // of a job that is cut (parallel.h): whose rank it is
  Workload::Recompute recompute = Workload::Recompute::kNone;  // of the activations

  double states() const { return weights + gradients + optimizer + buffers; }
  bool counts_activations() const { return activations >= 0; }
  double total() const { return states() + (counts_activations() ? activations : 0); }
  // Activations among it where they are counted.
  bool fits() const;
};

// Three digits: "32.1", "1230". Devices are sold by 10^9 bytes.
std::string gigabytes(double bytes);

// Of the stage that holds most.
Memory memory_of(const Scenario& scenario, const Strategy& strategy);

// A rank's of each stage of the pipeline; one where there is none.
std::vector<Memory> memory_by_stage(const Scenario& scenario, const Strategy& strategy);

// What is to be said of a strategy's memory where it does not fit.
std::optional<std::string> memory_uncertainty(const Scenario& scenario, const Strategy& strategy);

// "with Adam needs 214 GB a GPU, 53.8 of them activations, A100 has 40 GB".
std::string memory_needs(const Scenario& scenario, const Memory& memory);

// What a rank keeps of the forward pass for the backward pass, at a step's fullest moment: the
// values that forward operators write and backward operators read, of the micro-batches that are
// under way on its stage (plan::passes_of). Recomputation as Megatron has it (Korthikanti et al.
// 2022, 5): selective keeps nothing of attention's scores, full only what goes into each layer.

// Returns the bytes of a rank of that stage; `narrow`: parameters come as narrow as the products
// take them, whatever their gradients are. Requires the workload's operators.
double activations_of(const Workload& workload, int stage, bool narrow = false);

}  // namespace syncline::measure
