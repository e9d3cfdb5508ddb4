// Any bytes are a model's config.json, or a head of safetensors, or an InputError.
#include "core/job/models/safetensors.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_mutator.h"

SYNCLINE_FUZZ_TARGET(model, bytes) {
  using namespace syncline;
  const std::string file = fuzz::path_of(bytes);
  if (bytes.starts_with("{")) {
    (void)job::models::read_config({file});
  } else {
    (void)job::models::read_safetensors({file});
  }
}
