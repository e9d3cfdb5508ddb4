// Texts that hold one JSON value: the same values as the parser's own, strictly, and of any size.
#include "formats/json/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/full_scenario.h"
#include "tests/support/text.h"

namespace syncline {
namespace {

using test::contains;
using test::input_error;

std::string nested(int levels, const std::string& inside, bool objects) {
  std::string text;
  for (int i = 0; i < levels; ++i) text += objects ? R"({"a":)" : "[";
  text += inside;
  for (int i = 0; i < levels; ++i) text += objects ? "}" : "]";
  return text;
}

Json random_value(std::mt19937& random, int depth) {
  switch (random() % (depth > 0 ? 8 : 6)) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return static_cast<std::int64_t>(random()) - (std::int64_t{1} << 31);
    case 3:
      return static_cast<std::uint64_t>(random()) << 32;
    case 4:
      return std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 400) - 200);
    case 5:
      return "text \"\\\n\xc3\xa4" + std::to_string(random());
    case 6: {
      Json list = Json::array();
      for (auto left = random() % 5; left > 0; --left)
        list.push_back(random_value(random, depth - 1));
      return list;
    }
    default: {
      // Now and then more keys than are looked at one by one.
      Json object = Json::object();
      const unsigned keys = random() % 4 == 0 ? 40 : 4;
      for (unsigned i = 0; i < keys; ++i) {
        object["k" + std::to_string(random())] = random_value(random, depth - 1);
      }
      return object;
    }
  }
}

TEST(JsonText, GivesTheValuesThatWereWritten) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const Json value = random_value(random, 4);
    const std::string text = value.dump(static_cast<int>(random() % 3) - 1);
    EXPECT_EQ(parse_json_text("x.json", text).dump(), value.dump());
    const auto read = try_parse_json(text);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->dump(), value.dump());
  }
}

TEST(JsonText, RefusesAKeyGivenTwiceAtAnyDepth) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    const int keys = 2 + static_cast<int>(random() % 60);
    const int twice = static_cast<int>(random() % static_cast<unsigned>(keys));
    std::string text = R"({"outside": 1, "in": [{)";
    for (int k = 0; k < keys; ++k) text += "\"k" + std::to_string(k) + "\": {\"outside\": 2}, ";
    text += "\"k" + std::to_string(twice) + "\": 3}]}";
    EXPECT_EQ(input_error([&] { parse_json_text("x.json", text); }),
              "x.json: key 'k" + std::to_string(twice) + "' is given twice");
  }
  EXPECT_LT(input_error([] {
              const std::string key = '"' + std::string(1 << 20, 'k') + "\":1";
              parse_json_text("x.json", "{" + key + "," + key + "}");
            }).size(),
            300u);
}

TEST(JsonText, IsAtMost64LevelsDeep) {
  for (const bool objects : {false, true}) {
    EXPECT_NO_THROW(parse_json_text("x.json", nested(64, "1", objects)));
    EXPECT_TRUE(try_parse_json(nested(64, "1", objects)));
    for (const int levels : {65, 100000}) {
      EXPECT_TRUE(contains(input_error([&] { parse_json_text("x", nested(levels, "1", objects)); }),
                           "nested more than 64 levels deep"));
      EXPECT_FALSE(try_parse_json(nested(levels, "1", objects)));
    }
  }
}

TEST(JsonText, OtherTextHasNoValue) {
  for (const char* text : {"", "{", "{} {}", "[1,]", "NaN", "1e400", "\"\xff\"", "{\"a\" 1}"}) {
    EXPECT_FALSE(try_parse_json(text)) << text;
  }
}

// Square time would be minutes for each of these.
TEST(JsonText, ManyValuesAreReadInOnePass) {
  constexpr std::size_t kMany = 300000;
  std::string list = "[{}";
  std::string object = R"({"k":1)";
  for (std::size_t i = 1; i < kMany; ++i) {
    list += ",{}";
    object += ",\"k" + std::to_string(i) + "\":1";
  }
  EXPECT_EQ(parse_json_text("x.json", list + "]").size(), kMany);
  EXPECT_EQ(parse_json_text("x.json", object + "}").size(), kMany);
}

}  // namespace
}  // namespace syncline
