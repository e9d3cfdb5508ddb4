// Any bytes are an execution trace or an InputError.
#include "core/job/execution_trace/execution_trace.h"
#include "tests/fuzz/fuzz_target.h"

SYNCLINE_FUZZ_TARGET(execution_trace, bytes) {
  (void)syncline::job::execution_trace::observed_from_text("fuzzed_trace", bytes);
}
