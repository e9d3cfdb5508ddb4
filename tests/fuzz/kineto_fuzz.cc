// Any bytes are a Kineto trace or an InputError; the parts of a step are the step.
#include "core/job/format.h"
#include "tests/fuzz/fuzz_target.h"

SYNCLINE_FUZZ_TARGET(kineto, bytes) {
  using namespace syncline;
  for (const job::Rank& rank : job::kineto::kFormat.read({fuzz::path_of(bytes)}).ranks) {
    for (const job::Step& step : rank.steps) {
      const double sum = step.forward + step.backward + step.copy_out + step.exposed + step.stages +
                         step.host_gap + step.update;
      if (!(sum - step.gpu < 1e-6 * (1 + step.gpu) && step.gpu - sum < 1e-6 * (1 + step.gpu))) {
        std::abort();
      }
    }
  }
}
