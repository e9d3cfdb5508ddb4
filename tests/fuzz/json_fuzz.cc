// Any bytes are JSON, read strictly, or an InputError.
#include "formats/json/text.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_mutator.h"

SYNCLINE_FUZZ_TARGET(json, bytes) { (void)syncline::parse_json_text("fuzzed.json", bytes); }
