// Any bytes are an execution trace or an InputError, never worse.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/error.h"
#include "core/job/execution_trace/execution_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syncline;
  try {
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    (void)job::execution_trace::observed_from_text("fuzzed_trace", bytes);
  } catch (const InputError&) {
  }
  return 0;
}
