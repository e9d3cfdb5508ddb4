// Warnings to read before relying on the imported job, and refusals of traces that give no
// scenario, with the facts that are known.
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
  std::size_t operators_a_step = 0;   // recorded by the profiler on the host
  bool collectives_on_device = true;  // false: the trace has only the host's calls
  bool world_told = false;            // a file names the number of ranks
  bool agreed = true;                 // the ranks agree about their collectives' content
  std::vector<std::string> notes;     // without the file's name
};

// Sets `observed.warnings`, the gravest first, followed by the notes of the reading.
void warn(Observed& observed, const ReadFacts& facts);

// Throws InputError if the trace shows no training on a GPU.
void refuse_untrained(const Trace& trace, const std::vector<Arrival>& arrivals);

// Returns true if names or reduce-scatters show that gradients are sharded (FSDP, ZeRO).
bool looks_sharded(const Trace& trace, const TraceTimeline& timeline);

// Throws InputError: gradients or parameters are sharded, and no known collective carries the
// gradients.
[[noreturn]] void refuse_sharded(const Trace& trace, const TraceTimeline& timeline);

// Returns true if experts or pipeline stages of one model communicate across ranks.
bool looks_parallel(const Trace& trace, const TraceTimeline& timeline);

// Throws InputError: ranks share a model, and the trace names no groups of them.
[[noreturn]] void refuse_parallel(const Trace& trace, const TraceTimeline& timeline);

// Throw InputError, with the times of steps and collectives: the sizes of gradients are unknown, of
// a job that is cut and of others.
[[noreturn]] void refuse_shapes(const Trace& trace, const TraceTimeline& timeline,
                                const Step& step);
[[noreturn]] void refuse_sizes(const Trace& trace, const TraceTimeline& timeline,
                               const DerivedStep& derived);

}  // namespace syncline::job::kineto
