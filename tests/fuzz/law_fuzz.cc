// Any bytes are the law of a calibrated cluster, which can be asked for times, or an InputError.
#include "core/input/scenario_json.h"
#include "core/json/text.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_mutator.h"

SYNCLINE_FUZZ_TARGET(law, bytes) {
  using namespace syncline;
  const Json root = parse_json_text("fuzzed.json", bytes);
  if (!root.is_object()) return;
  const cost::MeasuredLaw law = input::read_law(Reader(root, "fuzzed.json", ""));
  const Json written = input::law_json(law);
  // What is written is read back, and written as the same.
  if (input::law_json(input::read_law(Reader(written, "written.json", ""))) != written) {
    std::abort();
  }
}
