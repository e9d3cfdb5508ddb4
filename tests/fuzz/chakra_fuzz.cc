// Any bytes are a Chakra trace or an InputError, never worse.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/error.h"
#include "core/job/chakra/chakra.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syncline;
  try {
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    (void)job::chakra::observed_from_bytes("fuzzed_trace", bytes);
  } catch (const InputError&) {
  }
  return 0;
}
