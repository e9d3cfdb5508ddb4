// Any bytes are a model's config.json, a head of safetensors, a list of parameters, or an
// InputError.
#include "imports/format.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_mutator.h"

SYNCLINE_FUZZ_TARGET(model, bytes) {
  using namespace syncline;
  const std::string file = fuzz::path_of(bytes);
  namespace models = job::models;
  const job::ImportFormat& format = bytes.starts_with("{")                ? models::kConfig
                                    : bytes.size() > 8 && bytes[8] == '{' ? models::kSafetensors
                                                                          : models::kTensorList;
  (void)format.read({file});
}
