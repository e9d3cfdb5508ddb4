// What the fuzzers were started from and found, given to a reader in every build.
#pragma once

#include <filesystem>
#include <string>

#include "core/error.h"
#include "tests/support/scratch.h"

namespace syncline::test {

struct Replayed {
  int read = 0;
  int refused = 0;
};

// Any input is read or refused with an InputError; anything else leaves this function.
template <typename Reader>
Replayed replay_corpus(const std::string& name, const Reader& reader) {
  const auto folder = std::filesystem::path(SYNCLINE_SOURCE_DIR) / "tests/fuzz/corpus" / name;
  Replayed replayed;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    try {
      reader(text_of(entry.path().string()));
      ++replayed.read;
    } catch (const InputError&) {
      ++replayed.refused;
    }
  }
  return replayed;
}

}  // namespace syncline::test
