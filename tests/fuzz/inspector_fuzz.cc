// Any bytes are lines of NCCL's Inspector or an InputError, never worse.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/calibrate/inspector/inspector.h"
#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syncline;
  try {
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    (void)calibrate::inspector_tables("fuzzed", {{"fuzzed_log", bytes}});
  } catch (const InputError&) {
  }
  return 0;
}
