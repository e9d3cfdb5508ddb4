// The trace of one rank of a job that is cut into groups of ranks: its layout and its steps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "imports/kineto/timeline.h"
#include "imports/observed.h"

namespace syncline::job::kineto {

// Whether it is such a job's; then its collectives know their groups, which `groups` lists.
bool is_whole(const Trace& trace, TraceTimeline& timeline, const std::vector<Arrival>& arrivals,
              std::vector<RankGroup>& groups);

// Sets layout, groups and steps of `observed`. Throws InputError where groups lie or tell too
// little.
void read_whole(const Trace& trace, TraceTimeline& timeline, const std::vector<Arrival>& arrivals,
                std::vector<RankGroup> groups, Observed& observed, std::vector<std::string>& notes);

bool same_layout(const std::optional<Whole>& a, const std::optional<Whole>& b);

// Of the ranks together: groups that several ranks tell are one, with what they took and who came
// late. `told`: by rank, of which Exchange::in is the place.
void join_groups(std::vector<std::vector<RankGroup>> told, Observed& observed);

// One step of a job that is cut into groups of ranks: passes of micro-batches through one stage,
// taken apart along the compute stream, without what the stage waits for from other stages and for
// gradients and parameters.

// One backward pass, gradient by gradient as they arrived.
struct StagePass {
  std::vector<Seconds> waits;
  std::vector<int> tensors;  // places in Trace::tensors; -1: none
  std::vector<Nanoseconds> arrived;
};

// What the host did with an exchange of Step::exchanges.
struct WholeSent {
  Nanoseconds launched = 0;
  std::size_t pass = 0;  // the one that had begun last
  bool engine = false;   // by autograd's thread, inside a backward pass
  bool behind = false;   // no gradient arrives after it
};

struct WholeStep {
  Step step;  // its gradients are those that find_whole_sizes makes of the passes
  std::vector<StagePass> passes;
  std::vector<WholeSent> sent;
  bool regathers = false;     // parameters are gathered inside backward passes
  bool gathers_late = false;  // and beside the forward pass
  std::optional<DType> gathered;
  bool alternates = false;  // forward passes stand between backward passes
  int chunks = 1;           // of the model, that the stage holds
  int exchanging_passes = 1;
};

// Requires arrivals in the window.
WholeStep derive_whole_step(const Trace& trace, const TraceTimeline& timeline,
                            const std::vector<Arrival>& arrivals, const StepWindow& window,
                            const std::vector<RankGroup>& groups);

// Sets the step's gradients, the chunks they are of, and which of them each exchange carries.
// False: a gradient's shape is not told. Throws InputError where passes differ in their gradients,
// or nothing tells which gradients are the experts'.
bool find_whole_sizes(const Trace& trace, const std::vector<RankGroup>& groups,
                      const Parallel& parallel, int stage, WholeStep& whole);

}  // namespace syncline::job::kineto
