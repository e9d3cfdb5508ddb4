#include "formats/text/visible.h"

#include <gtest/gtest.h>

namespace syncline {
namespace {

TEST(Visible, BlanksWhatATerminalObeys) {
  EXPECT_EQ(visible(std::string("a\x1b[31m\a\r\0b\x7f", 11)), "a [31m   b ");
  EXPECT_EQ(visible("a\nb\r\n", "\n"), "a\nb \n");
  EXPECT_EQ(visible("\xc2\x9b"
                    "31m"),
            " 31m")
      << "CSI as one letter";
  EXPECT_EQ(visible("\xc3\xa4\xc2\xa0\xe2\x82\xac"), "\xc3\xa4\xc2\xa0\xe2\x82\xac");
}

TEST(Visible, BlanksWhatTurnsTheDirectionOrIsUnseen) {
  EXPECT_EQ(visible("a\xe2\x80\xae"
                    "b\xe2\x81\xa9"
                    "c"),
            "a b c");
  EXPECT_EQ(visible("a\xe2\x80\x8b"
                    "b\xef\xbb\xbf"
                    "c\xe2\x80\xa8"
                    "d\xd8\x9c"),
            "a b c d ");
  EXPECT_EQ(visible("\xe2\x80\x8d\xe2\x80"), "\xe2\x80\x8d\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(visible("\xe2\x80\xa6\xe2\x81\xaa"), "\xe2\x80\xa6\xe2\x81\xaa") << "others stand";
}

TEST(Visible, BytesThatAreNoLettersAreOne) {
  EXPECT_EQ(visible("a\xff\x9b\xc3\xa4"), "a\xef\xbf\xbd\xef\xbf\xbd\xc3\xa4");
  EXPECT_EQ(visible("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(Shortened, KeepsTheEndIfItIsCutInside) {
  EXPECT_EQ(shorten_middle("abcdef", 6), "abcdef");
  EXPECT_EQ(shorten_middle("abcdefgh", 6), "abc...fgh");
  EXPECT_EQ(shorten_middle("ab\xc3\xa4yyy\xc3\xa4zz", 6), "ab...zz");
}

TEST(Shortened, ContainsNoNul) { EXPECT_EQ(shorten_text(std::string("a\0b", 3)), "a b"); }

TEST(Shortened, CutsBetweenLetters) {
  EXPECT_EQ(shorten_text("abc", 3), "abc");
  EXPECT_EQ(shorten_text("abcd", 3), "abc...");
  EXPECT_EQ(shorten_text("ab\xc3\xa4", 3), "ab...");
  EXPECT_EQ(shorten_text(std::string(1 << 20, 'x')).size(), 203u);
}

}  // namespace
}  // namespace syncline
