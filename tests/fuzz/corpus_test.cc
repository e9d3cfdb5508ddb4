// Every file of every corpus is read or refused by its target, in any build.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/fuzz/fuzz_target.h"
#include "tests/support/corpus.h"

namespace syncline::fuzz {
namespace {

TEST(FuzzCorpus, EveryTargetReadsOrRefusesAllOfIt) {
  for (const Target& target : targets()) {
    const auto replayed = test::replay_corpus(std::string(target.name), target.read);
    EXPECT_GE(replayed.read, 1) << target.name << ": a corpus without a valid file begins nowhere";
  }
}

TEST(FuzzCorpus, EveryCorpusHasItsTarget) {
  std::set<std::string> folders;
  for (const auto& entry :
       std::filesystem::directory_iterator(SYNCLINE_SOURCE_DIR "/tests/fuzz/corpus")) {
    folders.insert(entry.path().filename());
  }
  std::set<std::string> names;
  for (const Target& target : targets()) names.emplace(target.name);
  EXPECT_EQ(folders, names);
}

// A cut anywhere is what a kill or a full disk leaves.
TEST(FuzzCorpus, EveryFileCutShortIsReadOrRefused) {
  for (const Target& target : targets()) {
    test::replay_corpus(std::string(target.name), [&](const std::string& bytes) {
      for (std::size_t eighth = 0; eighth < 8; ++eighth) {
        try {
          target.read(bytes.substr(0, bytes.size() * eighth / 8));
        } catch (const InputError&) {
        }
      }
    });
  }
}

}  // namespace
}  // namespace syncline::fuzz
