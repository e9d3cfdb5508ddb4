// Any bytes are the cost model of a calibrated cluster, which can be asked for times, or an
// InputError.
#include "formats/input/cost_model_json.h"
#include "formats/json/text.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_mutator.h"

SYNCLINE_FUZZ_TARGET(cost_model, bytes) {
  using namespace syncline;
  const Json root = parse_json_text("fuzzed.json", bytes);
  if (!root.is_object()) return;
  const cost::MeasuredCostModel cost_model =
      input::read_cost_model(Reader(root, "fuzzed.json", ""));
  const Json written = input::cost_model_json(cost_model);
  // What is written is read back, and written as the same.
  if (input::cost_model_json(input::read_cost_model(Reader(written, "written.json", ""))) !=
      written) {
    std::abort();
  }
}
