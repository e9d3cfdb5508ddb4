// Any bytes are an evaluated row, as shards and worker processes leave it, or said to be cut short.
#include <nlohmann/json.hpp>

#include "studies/study/study.h"
#include "tests/fuzz/fuzz_target.h"

SYNCLINE_FUZZ_TARGET(row, bytes) {
  using namespace syncline;
  try {
    const measure::Row row = measure::row_from_bytes(bytes);
    if (measure::row_bytes(row) != bytes) std::abort();
    (void)measure::metrics_from_bytes(bytes);
  } catch (const MachineError&) {
  }
}
