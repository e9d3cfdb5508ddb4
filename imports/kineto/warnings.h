// Warnings that a reader of the imported job must know before believing it, and refusals of traces
// of which no scenario can be made, with the facts that are known of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "imports/kineto/timeline.h"
#include "imports/observed.h"

namespace syncline::job::kineto {

struct DerivedStep;

// Facts about a trace as it was read; those of the first rank if ranks differ.
struct ReadFacts {
  std::size_t operators_a_step = 0;   // that the profiler recorded on the host
  bool collectives_on_device = true;  // false: only the host's calls stand in the trace
  bool world_told = false;            // a file names the number of ranks
  bool agreed = true;                 // the ranks agree on what their collectives carry
  std::vector<std::string> notes;     // without the file's name
};

// Sets `observed.warnings`, the gravest first, the notes of the reading behind them.
void warn(Observed& observed, const ReadFacts& facts);

// Throws InputError where the trace shows no training on a GPU.
void refuse_untrained(const Trace& trace, const std::vector<Arrival>& arrivals);

// Tells whether names or reduce-scatters say that gradients are sharded (FSDP, ZeRO).
bool looks_sharded(const Trace& trace, const TraceTimeline& timeline);

// Throws InputError: gradients or parameters are sharded, and nothing carries the gradients that
// could be told.
[[noreturn]] void refuse_sharded(const Trace& trace, const TraceTimeline& timeline);

// Tells whether experts or pipeline stages of one model talk to each other across ranks.
bool looks_parallel(const Trace& trace, const TraceTimeline& timeline);

// Throws InputError: ranks share a model, and no groups of them are told.
[[noreturn]] void refuse_parallel(const Trace& trace, const TraceTimeline& timeline);

// Throws InputError: gradients whose sizes stand nowhere.
[[noreturn]] void refuse_sizes(const Trace& trace, const DerivedStep& derived);

}  // namespace syncline::job::kineto
