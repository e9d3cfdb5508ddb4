// Any bytes are lines of NCCL's Inspector or an InputError.
#include "studies/calibrate/inspector/inspector.h"
#include "tests/fuzz/fuzz_target.h"

SYNCLINE_FUZZ_TARGET(inspector, bytes) {
  (void)syncline::calibrate::inspector_tables("fuzzed", {{"fuzzed_log", bytes}});
}
