// One name, one type: two headers that define the same name in our one namespace make programs
// whose destructors are each other's, without a word from compiler or linker.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>

namespace {

namespace fs = std::filesystem;

TEST(OneDefinition, EveryTypeOfAHeaderHasANameOfItsOwn) {
  const std::regex definition(R"(^(?:struct|class|enum class) ([A-Z]\w*)[^;]*\{.*)");
  std::map<std::string, std::string> known;
  for (const char* room :
       {"core", "sim", "kernels", "reports", "live", "backend_gloo", "backend_nccl", "cli"}) {
    const fs::path folder = fs::path(SYNCLINE_SOURCE_DIR) / room;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".h") continue;
      std::ifstream in(entry.path());
      std::smatch found;
      for (std::string line; std::getline(in, line);) {
        if (!std::regex_match(line, found, definition)) continue;
        const auto [it, fresh] = known.try_emplace(found[1], entry.path().string());
        EXPECT_TRUE(fresh) << found[1] << " is defined in " << it->second << " and in "
                           << entry.path();
      }
    }
  }
  EXPECT_GT(known.size(), 100u);
}

}  // namespace
