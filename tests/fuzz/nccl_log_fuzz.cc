// Any bytes are a log or an InputError, never worse.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/calibrate/nccl_log.h"
#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace syncline;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const cost::MeasuredTable& table : calibrate::nccl_log_from_text("fuzzed_log", text)) {
      cost::usable_points(table, cost::Place::kOutOfPlace);
      cost::is_clean(table);
    }
  } catch (const InputError&) {
  }
  return 0;
}
