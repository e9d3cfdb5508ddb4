// Any bytes are a log of nccl-tests or an InputError.
#include "studies/calibrate/log_files.h"
#include "tests/fuzz/fuzz_target.h"

SYNCLINE_FUZZ_TARGET(nccl_log, bytes) {
  using namespace syncline;
  for (const cost::MeasuredTable& table : calibrate::nccl_log_from_text("fuzzed_log", bytes)) {
    cost::usable_points(table, cost::Place::kOutOfPlace);
    cost::is_clean(table);
  }
}
