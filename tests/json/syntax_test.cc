// What is wrong with a text that is no JSON.
#include "formats/json/text.h"

#include <gtest/gtest.h>

#include "formats/json/reader.h"
#include "tests/support/full_scenario.h"
#include "tests/support/text.h"

namespace syncline {
namespace {

using test::contains;

std::string refusal(const std::string& text) {
  return test::input_error([&] { parse_json_text("x.json", text); });
}

TEST(Syntax, OtherFormatsAreNamed) {
  for (const auto& [text, mistake] : std::vector<std::pair<const char*, std::string>>{
           // Commas too many and too few.
           {"{\n  \"a\": 1,\n}", "a comma before '}' (line 2)"},
           {"{\"a\": 1,,\n\"b\": 2}", "two commas in a row (line 1)"},
           {"[1, 2,]", "a comma before ']' (line 1)"},
           {"{\n  \"a\": 1\n  \"b\": 2}", "a comma is missing after line 2, before '\"b\"'"},
           {"{\"a\": \"x, y\\\"\" \"b\": 2}", "a comma is missing after line 1, before '\"b\"'"},
           {"[{\"a\": 1}\n {\"a\": 2}]", "a comma is missing after line 1, before '{'"},
           // Words of other languages.
           {"{\"a\": NaN}", "NaN is not a JSON number (line 1, column 7)"},
           {"{\"a\": -Infinity}", "-Infinity is not a JSON number (line 1, column 7)"},
           {"{\n// note\n\"a\": 1}",
            "JSON has no comments (line 2, column 1); \"about\" holds text"},
           // Other encodings.
           {"\x1f\x8b\x08\x01", "this is a gzip file, unpack it first"},
           {"\xff\xfe{", "this is UTF-16, save it as UTF-8"}}) {
    EXPECT_EQ(refusal(text), "x.json: not valid JSON: " + mistake);
  }
  EXPECT_TRUE(contains(refusal("{\"a\": 1 # one\n}"), "JSON has no comments"));
  EXPECT_TRUE(contains(refusal("{\"a\": 1, /* one */ \"b\": 2}"), "JSON has no comments"));
  EXPECT_TRUE(contains(refusal("{'a': 1}"), "JSON quotes with \""));
}

TEST(Syntax, RefusesNumbersBeyondDouble) {
  EXPECT_EQ(refusal("{\n \"a\": 1e400}"),
            "x.json: the number 1e400 at line 2, column 7 is too large");
}

std::vector<std::string> place_shown(const std::string& text) {
  try {
    parse_json_text("x.json", text);
  } catch (const InputMistakes& mistake) {
    return mistake.below;
  } catch (const InputError&) {
  }
  return {};
}

using Lines = std::vector<std::string>;

TEST(Syntax, TheLineIsShownWithAMarkBelowTheMistake) {
  EXPECT_EQ(place_shown("{\n  \"a\": 1,\n}"), (Lines{"  2 |   \"a\": 1,", "              ^"}));
  EXPECT_EQ(place_shown("{\n\t\"a\": 1\n\t\"b\": 2}"),
            (Lines{"  2 |  \"a\": 1", "             ^"}));
  EXPECT_EQ(place_shown("{\"\u00fc\": // note\n1}"),
            (Lines{"  1 | {\"\u00fc\": // note", "            ^"}));
  EXPECT_EQ(place_shown("{\"a\": 1"), (Lines{"  1 | {\"a\": 1", "             ^"}));
  EXPECT_TRUE(place_shown("\x1f\x8b\x08\x01").empty());
}

TEST(Syntax, ALongLineIsCutAroundTheMistake) {
  std::string many;
  for (int i = 0; i < 200; ++i) many += "1, ";
  const auto shown = place_shown("[" + many + "2,, " + many + "3]");
  ASSERT_EQ(shown.size(), 2U);
  EXPECT_LT(shown[0].size(), 100U);
  EXPECT_EQ(shown[0].substr(shown[1].size() - 2, 2), ",,") << shown[0] << "\n" << shown[1];
}

TEST(Syntax, LettersOfOtherEncodingsAreNeverPrinted) {
  const std::string latin = refusal("{\"caf\xe9\": 1}");
  EXPECT_TRUE(contains(latin, "not UTF-8 at line 1, column 6")) << latin;
  EXPECT_EQ(latin.find('\xe9'), std::string::npos);
}

TEST(Syntax, OtherLanguagesAreNamed) {
  for (const char* word : {"True", "False", "None"}) {
    EXPECT_TRUE(refusal(std::string("{\"a\": ") + word + "}")
                    .starts_with("x.json: not valid JSON: JSON writes true, false and null, not "))
        << word;
  }
  for (const char* text : {"name: a\nnodes: 2\n", "---\nname: a\n"}) {
    EXPECT_TRUE(
        refusal(text).starts_with("x.json: not valid JSON: this looks like YAML: JSON begins "
                                  "with '{' and quotes its keys"))
        << refusal(text);
  }
}

// Whatever one letter is changed to, the message is one line of print.
TEST(Syntax, EveryMessageIsOneLine) {
  const std::string whole(test::kFullScenarioText);
  for (std::size_t at = 0; at < whole.size(); at += 3) {
    for (const char letter : {',', '}', '"', '\xe9', '\n', 'N', '/'}) {
      std::string text = whole;
      text[at] = letter;
      const std::string message = refusal(text);
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      EXPECT_LT(message.size(), 300U) << message;
    }
  }
}

}  // namespace
}  // namespace syncline
