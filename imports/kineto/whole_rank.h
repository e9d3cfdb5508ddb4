// The trace of one rank of a partitioned job (model parallelism or shards): its layout and steps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "imports/kineto/timeline.h"
#include "imports/observed.h"

namespace syncline::job::kineto {

// Returns true for a trace of such a job; then sets its collectives' groups, and `groups`.
bool is_whole(const Trace& trace, TraceTimeline& timeline, const std::vector<Arrival>& arrivals,
              std::vector<RankGroup>& groups);

// Sets layout, groups and steps of `observed`. Throws InputError if groups are wrong or incomplete.
void read_whole(const Trace& trace, TraceTimeline& timeline, const std::vector<Arrival>& arrivals,
                std::vector<RankGroup> groups, Observed& observed, std::vector<std::string>& notes);

bool same_layout(const std::optional<Whole>& a, const std::optional<Whole>& b);

// Merges the groups that the traces of several ranks list, with their times and late ranks. `told`:
// each rank's list, into which ObservedExchange::in of that rank points before and after the call.
void join_groups(std::vector<std::vector<RankGroup>> told, Observed& observed);

// One backward pass of a micro-batch, gradient by gradient as they arrived.
struct StagePass {
  std::vector<Seconds> waits;
  std::vector<int> tensors;  // places in Trace::tensors; -1: none
  std::vector<Nanoseconds> arrived;
};

// The host's work on an exchange of Step::exchanges.
struct WholeSent {
  Nanoseconds launched = 0;
  std::size_t pass = 0;  // index of the last pass that had begun
  bool engine = false;   // by autograd's thread, inside a backward pass
  bool behind = false;   // no gradient arrives after it
};

// One step of a partitioned job: the passes of its micro-batches through one pipeline stage.
struct WholeStep {
  Step step;  // find_whole_sizes makes its gradients from the passes
  std::vector<StagePass> passes;
  std::vector<WholeSent> sent;
  bool regathers = false;     // parameters are gathered inside backward passes
  bool gathers_late = false;  // parameters are gathered during the forward pass too
  std::optional<DType> gathered;
  bool alternates = false;    // forward passes run between backward passes
  int chunks = 1;             // chunks of the model that the stage holds
  int exchanging_passes = 1;  // backward passes after which gradients are exchanged
  // Shapes that the tensor group cuts, if only the collectives' sizes tell them.
  std::vector<std::vector<std::int64_t>> cut;
};

// Returns the step. Times of its passes are without waits for other stages, gradients and
// parameters. Requires arrivals in the window.
WholeStep derive_whole_step(const Trace& trace, const TraceTimeline& timeline,
                            const std::vector<Arrival>& arrivals, const StepWindow& window,
                            const std::vector<RankGroup>& groups);

// Sets the step's gradients, their chunks and the exchange of each. Returns false if a gradient's
// shape is unknown. Throws InputError if passes differ in their gradients, or the experts'
// gradients cannot be recognised.
bool find_whole_sizes(const Trace& trace, const std::vector<RankGroup>& groups,
                      const Parallel& parallel, int stage, WholeStep& whole);

}  // namespace syncline::job::kineto
