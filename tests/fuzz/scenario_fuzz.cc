// Any bytes are a scenario, with its search, or an InputError.
#include "formats/input/document.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_mutator.h"

SYNCLINE_FUZZ_TARGET(scenario, bytes) {
  using namespace syncline;
  const input::Document document = input::document_from_text("fuzzed.json", bytes);
  const Scenario scenario = input::parse_scenario(document);
  (void)input::parse_search(document, scenario);
}
