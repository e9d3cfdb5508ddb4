// Any bytes are a report of `validate` or an InputError.
#include "studies/fidelity/fidelity.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_mutator.h"

SYNCLINE_FUZZ_TARGET(validation, bytes) {
  using namespace syncline;
  (void)measure::table_of(measure::read_validation(fuzz::path_of(bytes)));
}
