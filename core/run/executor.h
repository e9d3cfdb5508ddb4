// The seam behind which a plan runs: in a closed-form model, in a simulation, on host memory, on
// real machines. An executor knows nothing of strategies; a plan knows nothing of executors.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "core/plan/plan.h"
#include "core/run/timeline.h"
#include "core/scenario/scenario.h"

namespace syncline::run {

// Gradients by rank and by index (tensors, then buffers); empty where only time is asked for.
using Gradients = std::vector<std::vector<std::vector<float>>>;

struct Outcome {
  Timeline timeline;
  Gradients gradients;            // after the exchange, where the executor moves data
  std::vector<Bytes> bytes_sent;  // by rank; empty where they are not counted
  // By job beside this one: when each of its periods ended; empty where none was run.
  std::vector<std::vector<Seconds>> others;
};

// What those who cost many plans need to know of the executor.
struct ExecutorTraits {
  // Durations come by formula: stragglers as their expectation, where others draw them again at
  // each step and need many steps for a mean; and bounds that follow from the formulas hold.
  bool closed_form = false;
  bool cheap = false;  // a plan takes about 0.1 ms
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string_view name() const = 0;
  virtual ExecutorTraits traits() const { return {}; }
  // Runs `periods` repetitions of the plan, one after the other on the same streams.
  virtual Outcome run(const plan::Plan& plan, const Gradients& input, int periods) = 0;
};

// A job on the same fabric, which repeats its plan as long as the first one runs.
struct Beside {
  plan::Plan plan;
  Cluster cluster;
  std::uint64_t seed = 1;
};

// What an executor needs beside the plan.
struct ExecutorSettings {
  Cluster cluster;
  Simulation simulation;
  std::uint64_t seed = 1;
  // Whose spans are wanted beside rank 0's, where ranks differ; empty: those of the first few.
  std::vector<int> traced_ranks = {};
  // Run beside the plan by executors that are not of closed form; the others have the mean of what
  // these take in the links of `cluster`.
  std::vector<Beside> others = {};
};

}  // namespace syncline::run
