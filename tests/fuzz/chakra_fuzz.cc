// Any bytes are a Chakra trace or an InputError.
#include "core/job/chakra/chakra.h"
#include "tests/fuzz/fuzz_target.h"

SYNCLINE_FUZZ_TARGET(chakra, bytes) {
  (void)syncline::job::chakra::observed_from_bytes("fuzzed_trace", bytes);
}
