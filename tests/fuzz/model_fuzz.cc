// Any bytes are a model's config.json, or a head of safetensors, or an InputError.
#include "imports/format.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_mutator.h"

SYNCLINE_FUZZ_TARGET(model, bytes) {
  using namespace syncline;
  const std::string file = fuzz::path_of(bytes);
  namespace models = job::models;
  (void)(bytes.starts_with("{") ? models::kConfig : models::kSafetensors).read({file});
}
