// Any bytes are a Kineto trace or an InputError; the parts of a step are the step, and it has
// gradients.
#include "imports/format.h"
#include "tests/fuzz/fuzz_target.h"

SYNCLINE_FUZZ_TARGET(kineto, bytes) {
  using namespace syncline;
  for (const job::Rank& rank : job::kineto::kFormat.read({fuzz::path_of(bytes)}).ranks) {
    for (const job::Step& step : rank.steps) {
      const double sum = step.broadcast + step.forward + step.backward + step.copy_out +
                         step.exposed + step.stages + step.host_gap + step.update;
      const double most = 1e-6 * (1 + step.gpu);
      const bool whole = sum - step.gpu < most && step.gpu - sum < most;
      if (!whole || step.gradients.empty()) std::abort();
    }
  }
}
