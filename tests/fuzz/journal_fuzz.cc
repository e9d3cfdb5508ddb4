// Any bytes are the journal of a search or an InputError.
#include <filesystem>
#include <fstream>

#include "formats/json/text.h"
#include "studies/machines/journal.h"
#include "tests/fuzz/fuzz_target.h"

// The search is whatever its first line says, so that the lines behind it are read too.
SYNCLINE_FUZZ_TARGET(journal, bytes) {
  using namespace syncline;
  static const std::string path = "/dev/shm/syncline-fuzz-journal-" + std::to_string(getpid());
  Json header = try_parse_json(bytes.substr(0, bytes.find('\n'))).value_or(Json::object());
  if (!header.is_object()) return;
  header.erase("sum");
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  try {
    const tune::Journal journal(path, header);
  } catch (const InputError&) {
  }
  std::filesystem::remove(path);
}
