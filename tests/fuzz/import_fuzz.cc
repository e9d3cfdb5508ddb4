// Any bytes are what a job left behind, in whatever format they are recognised, which becomes a
// scenario that is read as one, or an InputError.
#include "formats/input/document.h"
#include "imports/format.h"
#include "imports/scenario_of.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_mutator.h"

SYNCLINE_FUZZ_TARGET(import, bytes) {
  using namespace syncline;
  const job::Observed observed = job::read_job({fuzz::path_of(bytes)});
  const job::Imported imported = job::scenario_of(observed, {});
  try {
    (void)input::parse_scenario(input::document_from_text("imported", imported.scenario.dump()));
  } catch (const InputError&) {
    std::abort();
  }
}
