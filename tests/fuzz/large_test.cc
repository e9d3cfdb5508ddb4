// Large inputs of one kind: pieces that nest, chain or multiply, alone and after a valid file. A
// reader takes time by their size, and no stack. SYNCLINE_FUZZ_LARGE=1 (make fuzz) gives each
// target a megabyte of each piece.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "tests/fuzz/fuzz_target.h"
#include "tests/support/corpus.h"

namespace syncline::fuzz {
namespace {

std::size_t large_size() {
  return std::getenv("SYNCLINE_FUZZ_LARGE") != nullptr ? std::size_t{1} << 20
                                                       : std::size_t{1} << 16;
}

// A '#' is counted up.
constexpr std::string_view kPieces[] = {"[",
                                        "]",
                                        "{",
                                        "(",
                                        "[1]",
                                        "[0-131071]",
                                        "[0-131071][]",
                                        "a.",
                                        "{\"a\":",
                                        "[{\"a\":[",
                                        "\"k#\":1,",
                                        "k#: 1, ",
                                        "k# = 1\n",
                                        "k#=\"1\" ",
                                        "- ",
                                        "? ",
                                        "${A",
                                        "$(",
                                        "$A",
                                        "`",
                                        "\"",
                                        "'",
                                        "\\",
                                        "\"\\\"",
                                        "<a>",
                                        "<a k#='1'/>",
                                        "<!ENTITY x# '&x;'>",
                                        "&x#;",
                                        "--k# 1 ",
                                        "s#,",
                                        "131072,",
                                        ";",
                                        "1e",
                                        "#",
                                        "\n",
                                        "\r\n#\r\n",
                                        "\t",
                                        " ",
                                        std::string_view("\0\0\0\0", 4),
                                        "\xff",
                                        "&a [*a]",
                                        "A=$A$A\n",
                                        "if [ $A ]; then\n",
                                        "SwitchName=s# Switches=s1#\n",
                                        "SwitchName=s# Nodes=n#x[0-131070]\n"};

std::string repeated(std::string_view piece) {
  std::string text;
  for (int number = 0; text.size() < large_size(); ++number) {
    for (const char letter : piece) {
      text += letter == '#' && piece.size() > 1 ? std::to_string(number) : std::string(1, letter);
    }
  }
  return text;
}

class FuzzLarge : public ::testing::TestWithParam<Target> {};

TEST_P(FuzzLarge, IsReadOrRefusedByItsSize) {
  const Target target = GetParam();
  const auto corpus = test::corpus_of(std::string(target.name));
  const std::string& valid = corpus.front();
  for (const std::string_view piece : kPieces) {
    const std::string large = repeated(piece);
    for (const bool alone : {true, false}) {
      const std::string text = alone ? large : valid + large;
      const std::clock_t begin = std::clock();
      try {
        target.read(text);
      } catch (const InputError&) {
      }
      // A reader that compares each piece with all others takes minutes for a megabyte.
      constexpr double kMax = 10;
      EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, kMax)
          << large.size() << " bytes of '" << piece << (alone ? "'" : "' behind a valid file");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EachTarget, FuzzLarge, ::testing::ValuesIn(targets()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace syncline::fuzz
