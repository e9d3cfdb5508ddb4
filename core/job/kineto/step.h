// One step on the device, taken apart: forward, backward, copies, waiting, update, which add up.
#pragma once

#include <string>
#include <vector>

#include "core/job/kineto/timeline.h"
#include "core/job/observed.h"

namespace syncline::job::kineto {

// What the sizes of gradients may be read from, beside Step::gradients and Step::exchanges.
struct CopyOut {
  Bytes bytes = 0;  // 0: a kernel copied, which does not tell
  Seconds time = 0;
};

struct Sent {
  bool of_gradients = false;
  bool typed = false;       // its number format is told
  std::size_t arrived = 0;  // gradients that had arrived when the host launched it
};

struct DerivedStep {
  Step step;
  std::vector<int> tensors;         // of each gradient: place in Trace::tensors; -1: none
  std::vector<Seconds> complete;    // of each gradient: ready and copied in
  std::vector<CopyOut> copies_out;  // in the device's order
  std::vector<Sent> sent;           // of each exchange
  int passes = 1;                   // backward passes in it
  int exchanging_passes = 1;        // of these, those behind which gradients are exchanged
  int forwards = 0;                 // calls of DistributedDataParallel.forward
  bool copied_in = false;           // by the reducer, whatever it took
  bool hooked = false;              // by its way for communication hooks
};

// Requires arrivals in the window. Gradients have no sizes yet.
DerivedStep derive_step(const Trace& trace, const TraceTimeline& timeline,
                        const std::vector<Arrival>& arrivals, const StepWindow& window);

// How many elements each gradient of a step has, and which gradients each all-reduce carries.

enum class SizesFrom {
  kShapes,  // AccumulateGrad's Input Dims
  kCopies,  // bytes of the copies out of the buckets, which lie in the order of arrival
  kNothing,
};

struct Sizes {
  SizesFrom from = SizesFrom::kNothing;
  bool assumed_fp32 = false;  // no event tells a gradient's number format
  bool carried = false;       // an exchange carries gradients that are told
};

// Fills elements, formats and shapes of the gradients, their copies out, the gradients of each
// exchange and when it was complete. What cannot be told stays 0 or empty.
Sizes find_sizes(const Trace& trace, DerivedStep& derived);

// What a reader of the imported job must know before believing it.

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
