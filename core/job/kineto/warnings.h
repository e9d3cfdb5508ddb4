// What a reader of the imported job must know before believing it.
#pragma once

#include <string>
#include <vector>

#include "core/job/kineto/step.h"
#include "core/job/observed.h"

namespace syncline::job::kineto {

// Of the reading, beside what was observed; of the first rank where they differ.
struct ReadFacts {
  std::size_t operators_a_step = 0;
  bool collectives_on_device = true;
  bool world_told = false;  // a file names the number of ranks
  bool agreed = true;       // the ranks agree on what their collectives carry
};

// Sets `observed.warnings`, the gravest first, `notes` of the reading behind them.
void warn(Observed& observed, const ReadFacts& facts, std::vector<std::string> notes);

// Traces of which no scenario can be made: said with what is known of them.

// Throws InputError where the trace shows no training on a GPU.
void refuse_untrained(const Trace& trace, const std::vector<Arrival>& arrivals);

// Whether names or reduce-scatters say that gradients are sharded (FSDP, ZeRO).
bool looks_sharded(const Trace& trace, const TraceTimeline& timeline);

// Throws InputError: gradients or parameters are sharded, and nothing carries the gradients that
// could be told.
[[noreturn]] void refuse_sharded(const Trace& trace, const TraceTimeline& timeline);

// Whether experts or pipeline stages of one model talk to each other across ranks.
bool looks_parallel(const Trace& trace, const TraceTimeline& timeline);

// Throws InputError: ranks share a model, and no groups of them are told.
[[noreturn]] void refuse_parallel(const Trace& trace, const TraceTimeline& timeline);

// Throws InputError: gradients whose sizes stand nowhere.
[[noreturn]] void refuse_sizes(const Trace& trace, const DerivedStep& derived);

}  // namespace syncline::job::kineto
