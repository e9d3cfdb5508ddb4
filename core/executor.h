// The seam behind which a plan runs: in a closed-form model, in a simulation, on host memory, on
// real machines. An executor knows nothing of strategies; a plan knows nothing of executors.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/cost.h"
#include "core/plan.h"

namespace syncline::run {

// When each operation began and ended: what every executor returns, predicted or measured.

// One operation on one rank.
struct Span {
  int period = 0;
  plan::OpId op = 0;
  int rank = 0;
  Seconds begin = 0;
  Seconds end = 0;
};

struct Timeline {
  // A few representative ranks, not thousands; rank 0 is always among them. In order of `begin`
  // on each stream.
  std::vector<Span> spans;
  // When all ranks had finished each period.
  std::vector<Seconds> period_ends;
};

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
  bool cheap = false;    // a plan takes about 0.1 ms
  bool company = false;  // other jobs run beside the plan
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
  Simulation simulation = {};
  std::uint64_t seed = 1;
  // Whose spans are wanted beside rank 0's, where ranks differ; empty: those of the first few.
  std::vector<int> traced_ranks = {};
  // Run beside the plan by executors that are not of closed form; the others have the mean of what
  // these take in the links of `cluster`.
  std::vector<Beside> others = {};
};

// The host executor: every transfer of every round really moves floats between the ranks' arrays in
// this process. It knows no time; it is the truth for values and for bytes on the wire.

// `workload` has the shapes behind the plan's buckets and must outlive the executor.
std::unique_ptr<Executor> make_host_executor(const Workload& workload);

// Returns the closed-form model: durations by formula, streams as queues, links shared fairly.
// Computes the expected time under jitter; ranks are alike. Never fails.

std::unique_ptr<Executor> make_model_executor(const ExecutorSettings& settings);
// On the cache's cluster, with its costs.
std::unique_ptr<Executor> model_executor_on(std::shared_ptr<collective::CostCache> cache);

}  // namespace syncline::run
