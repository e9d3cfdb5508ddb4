// The README shows what the program prints: every block under an "output:" or "file:" mark is
// compared with it. SYNCLINE_UPDATE_GOLDEN=1 writes the blocks anew.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace {

const std::string kRoot = SYNCLINE_SOURCE_DIR;

std::string read(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string printed_by(const std::string& arguments) {
  const std::string command = "cd '" + kRoot + "' && '" SYNCLINE_BINARY "' " + arguments;
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  char block[4096];
  while (std::size_t got = std::fread(block, 1, sizeof block, pipe)) text.append(block, got);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

TEST(Readme, ShowsWhatTheProgramPrints) {
  const std::string readme = read(kRoot + "/README.md");
  std::string fresh;
  std::size_t at = 0;
  int blocks = 0;
  while (true) {
    const std::size_t mark = readme.find("<!-- ", at);
    if (mark == std::string::npos) break;
    const std::size_t mark_end = readme.find(" -->\n", mark);
    const std::size_t colon = readme.find(": ", mark);
    ASSERT_LT(colon, mark_end);
    const std::string kind = readme.substr(mark + 5, colon - mark - 5);
    const std::string what = readme.substr(colon + 2, mark_end - colon - 2);
    const std::size_t begin = readme.find('\n', mark_end + 5) + 1;  // behind the opening fence
    const std::size_t end = readme.find("```\n", begin);
    ASSERT_NE(end, std::string::npos);
    std::string wanted = kind == "output" ? printed_by(what) : read(kRoot + "/" + what);
    if (!wanted.empty() && wanted.back() != '\n') wanted += '\n';
    EXPECT_EQ(readme.substr(begin, end - begin), wanted) << what;
    fresh += readme.substr(at, begin - at) + wanted;
    at = end;
    ++blocks;
  }
  fresh += readme.substr(at);
  EXPECT_GE(blocks, 6);
  if (std::getenv("SYNCLINE_UPDATE_GOLDEN") != nullptr)
    std::ofstream(kRoot + "/README.md") << fresh;
}

// The page of scenarios/FIDELITY.md is what `syncline fidelity --format markdown` prints.
TEST(Readme, TheFidelityPageIsTrue) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP()
      << "all published tables are too slow under sanitizers; their parts are tested there";
#endif
  const std::string path = kRoot + "/scenarios/FIDELITY.md";
  const std::string wanted = printed_by("fidelity --format markdown");
  EXPECT_EQ(read(path), wanted) << "make it anew: SYNCLINE_UPDATE_GOLDEN=1";
  if (std::getenv("SYNCLINE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << wanted;
}

}  // namespace
