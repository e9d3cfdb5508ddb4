// Any bytes are a Kineto trace or an InputError, never worse.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/error.h"
#include "core/job/kineto/format.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syncline;
  static const int file = memfd_create("fuzzed_trace", 0);
  if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) < 0) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  try {
    for (const job::Rank& rank : job::kineto::kFormat.read({path}).ranks) {
      for (const job::Step& step : rank.steps) {
        const double sum = step.forward + step.backward + step.copy_out + step.exposed +
                           step.host_gap + step.update;
        if (!(sum - step.gpu < 1e-6 * (1 + step.gpu) && step.gpu - sum < 1e-6 * (1 + step.gpu))) {
          std::abort();
        }
      }
    }
  } catch (const InputError&) {
  }
  return 0;
}
