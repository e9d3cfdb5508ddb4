// The interface that runs a plan: in a closed-form model, in a simulation, on host memory, on real
// machines. An executor knows nothing of strategies; a plan knows nothing of executors.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/cost.h"
#include "core/plan.h"

namespace syncline::run {

// The begin and end of each operation: the result of every executor, predicted or measured.

// One operation on one rank.
struct Span {
  int period = 0;
  plan::OpId op = 0;
  int rank = 0;
  Seconds begin = 0;
  Seconds end = 0;
};

struct Timeline {
  // Spans of a few representative ranks, rank 0 always among them; by `begin` on each stream.
  std::vector<Span> spans;
  // Times at which all ranks had finished each period.
  std::vector<Seconds> period_ends;
};

// Gradients by rank and by index (tensors, then buffers); empty if only time is asked for.
using Gradients = std::vector<std::vector<std::vector<float>>>;

struct Outcome {
  Timeline timeline;
  Gradients gradients;            // after the exchange, if the executor moves data
  std::vector<Bytes> bytes_sent;  // by rank; empty if not counted
  // Ends of the periods of each job on the same fabric; empty without such jobs.
  std::vector<std::vector<Seconds>> others;
};

// Properties of an executor that matter to callers that cost many plans.
struct ExecutorTraits {
  // Durations come from formulas and bounds derived from these hold. Stragglers count by their
  // expectation; other executors draw them at each step and need many steps for a mean.
  bool closed_form = false;
  bool cheap = false;          // a plan takes about 0.1 ms
  bool shares_fabric = false;  // other jobs run at the same time as the plan
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual std::string_view name() const = 0;
  virtual ExecutorTraits traits() const { return {}; }
  // Runs `periods` repetitions of the plan, one after the other on the same streams.
  virtual Outcome run(const plan::Plan& plan, const Gradients& input, int periods) = 0;
};

// A job on the same fabric; repeats its plan as long as the first job runs.
struct Beside {
  plan::Plan plan;
  Cluster cluster;
  std::uint64_t seed = 1;
};

// An executor's input in addition to the plan.
struct ExecutorSettings {
  Cluster cluster;
  Simulation simulation = {};
  std::uint64_t seed = 1;
  // Ranks to trace in addition to rank 0, if ranks differ; empty: the first few.
  std::vector<int> traced_ranks = {};
  // Jobs that run at the same time, in executors that are not closed-form. For closed-form ones the
  // links of `cluster` already lack the jobs' mean load.
  std::vector<Beside> others = {};
};

// The host executor: every transfer of every round moves floats between the ranks' arrays in this
// process. It knows no time; it is the truth for values and for bytes on the wire.

// Returns the host executor. `workload` has the shapes of the plan's buckets and must outlive it.
std::unique_ptr<Executor> make_host_executor(const Workload& workload);

// Returns the closed-form model: durations by formula, streams as queues, links shared fairly. It
// computes the expected time under jitter; ranks are alike. Never fails.

std::unique_ptr<Executor> make_model_executor(const ExecutorSettings& settings);
// Returns the same on the cache's cluster, with its costs.
std::unique_ptr<Executor> make_cached_executor(std::shared_ptr<collective::CostCache> cache);

}  // namespace syncline::run
