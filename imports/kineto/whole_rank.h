// The trace of one rank of a job that is cut into groups of ranks: its layout and its steps.
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

// Merges groups that several ranks list into one, with their times and late ranks. `told`: by rank;
// Exchange::in is a place in it.
void join_groups(std::vector<std::vector<RankGroup>> told, Observed& observed);

// One step of a job that is cut into groups of ranks: passes of micro-batches through one stage,
// divided along the compute stream, without waits for other stages and for gradients and
// parameters.

// One backward pass, gradient by gradient as they arrived.
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

struct WholeStep {
  Step step;  // find_whole_sizes makes its gradients from the passes
  std::vector<StagePass> passes;
  std::vector<WholeSent> sent;
  bool regathers = false;     // parameters are gathered inside backward passes
  bool gathers_late = false;  // parameters are gathered during the forward pass too
  std::optional<DType> gathered;
  bool alternates = false;  // forward passes run between backward passes
  int chunks = 1;           // chunks of the model that the stage holds
  int exchanging_passes = 1;
};

// Returns the step. Requires arrivals in the window.
WholeStep derive_whole_step(const Trace& trace, const TraceTimeline& timeline,
                            const std::vector<Arrival>& arrivals, const StepWindow& window,
                            const std::vector<RankGroup>& groups);

// Sets the step's gradients, their chunks and the exchange of each. Returns false if a gradient's
// shape is unknown. Throws InputError if passes differ in their gradients, or the experts'
// gradients cannot be recognised.
bool find_whole_sizes(const Trace& trace, const std::vector<RankGroup>& groups,
                      const Parallel& parallel, int stage, WholeStep& whole);

}  // namespace syncline::job::kineto
