// What the fuzzers were started from and found, given to a reader in every build.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "tests/support/scratch.h"

namespace syncline::test {

struct Replayed {
  int read = 0;
  int refused = 0;
};

// The files that a target begins with.
inline std::vector<std::string> corpus_of(const std::string& name) {
  const auto folder = std::filesystem::path(SYNCLINE_SOURCE_DIR) / "tests/fuzz/corpus" / name;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(text_of(entry.path().string()));
  }
  std::sort(files.begin(), files.end());  // a folder has no order of its own
  return files;
}

// Any input is read or refused with an InputError; anything else leaves this function.
template <typename Reader>
Replayed replay_corpus(const std::string& name, const Reader& reader) {
  Replayed replayed;
  for (const std::string& file : corpus_of(name)) {
    try {
      reader(file);
      ++replayed.read;
    } catch (const InputError&) {
      ++replayed.refused;
    }
  }
  return replayed;
}

}  // namespace syncline::test
