// Any bytes are XML whose elements have tags, attributes and elements, or an InputError.
#include <cstdlib>
#include <string>

#include "formats/json/text.h"
#include "tests/fuzz/fuzz_target.h"

SYNCLINE_FUZZ_TARGET(xml, bytes) {
  using namespace syncline;
  const Json read = parse_xml("x", bytes);
  for (const char* key : {"tag", "attributes", "inside"}) {
    if (!read.contains(key)) std::abort();
  }
}
