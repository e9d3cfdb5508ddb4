// Strict reading of one object: what a message names, and which suggestions help.
#include "formats/json/reader.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/full_scenario.h"
#include "tests/support/text.h"

namespace syncline {
namespace {

using test::contains;
using test::input_error;

void expect_message(const std::string& message, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_TRUE(contains(message, part)) << message << " | " << part;
}

TEST(Describe, NamesValuesAsAPersonWould) {
  EXPECT_EQ(describe(Json("abc")), "'abc'");
  EXPECT_EQ(describe(Json(3)), "3");
  EXPECT_EQ(describe(Json(2.5)), "2.5");
  EXPECT_EQ(describe(Json(nullptr)), "null");
  EXPECT_EQ(describe(Json(true)), "true");
  EXPECT_EQ(describe(Json::object()), "an object");
  EXPECT_EQ(describe(Json::array()), "a list");
  EXPECT_LT(describe(Json(std::string(1000, 'a'))).size(), 100u);
}

TEST(Reader, ReadsWhatIsThereAndFallsBackOtherwise) {
  const Json json = Json::parse(R"({"text": "a", "yes": true, "number": 2.5, "whole": 32.0})");
  Reader reader(json, "x.json", "");
  EXPECT_EQ(reader.text("text"), "a");
  EXPECT_EQ(reader.text_or("other", "b"), "b");
  EXPECT_TRUE(reader.boolean_or("yes", false));
  EXPECT_TRUE(reader.boolean_or("no", true));
  EXPECT_EQ(reader.number("number", {}), 2.5);
  EXPECT_EQ(reader.number_or("none", 7, {}), 7);
  EXPECT_EQ(reader.integer("whole", 1, 64), 32);  // 32.0 is as good as 32
  EXPECT_EQ(reader.integer_or("count", 5, 1, 64), 5);
  EXPECT_TRUE(reader.objects("list").empty());
  EXPECT_NO_THROW(reader.finish());
}

TEST(Reader, NumbersKeepTheirLimits) {
  const Json json = Json::parse(R"({"zero": 0, "one": 1, "two": 2, "huge": 1e300})");
  Reader reader(json, "x.json", "a.b");
  EXPECT_EQ(reader.number("zero", {0, 1}), 0);
  EXPECT_EQ(reader.number("one", {0, 1}), 1);
  expect_message(input_error([&] {
                   reader.number("two", {0, 1});
                 }),
                 {"x.json", "a.b.two", "2", "from 0", "to 1"});
  expect_message(input_error([&] {
                   reader.number("zero", {0, 1, true});
                 }),
                 {"a.b.zero", "0", "above 0"});
  EXPECT_NE(input_error([&] { reader.number("huge", {}); }), "");
}

TEST(Reader, NumbersAreFinite) {
  const double infinite = std::numeric_limits<double>::infinity();
  for (const double value : {infinite, -infinite, std::numeric_limits<double>::quiet_NaN()}) {
    const Json json(value);
    EXPECT_THROW(checked_number(json, {}, "x.json", "a"), InputError);
    EXPECT_THROW(checked_integer(json, 0, 10, "x.json", "a"), InputError);
  }
}

// What no person writes: its reciprocal is no number any more.
TEST(Reader, NumbersAreNotNearerToNothingThanAnyQuantity) {
  for (const double value : {5e-324, 1e-320, 1e-300, 9e-31, -1e-300}) {
    expect_message(input_error([&] {
                     checked_number(Json(value), {-1, 1e15}, "x.json", "a");
                   }),
                   {"x.json: a", "0 or a number from 1e-30 to 1e15"});
    EXPECT_THROW(checked_number(Json(value), {0, 1e15, true}, "x.json", "a"), InputError);
  }
  for (const double value : {0.0, 1e-30, 1e-12, 1e15}) {
    EXPECT_EQ(checked_number(Json(value), {}, "x.json", "a"), value);
  }
}

TEST(Reader, EchoesTheBeginningOfAKey) {
  const Json json = Json::object({{std::string(1 << 20, 'k'), 1}});
  Reader reader(json, "x.json", "inter");
  EXPECT_LT(input_error([&] { reader.finish(); }).size(), 400u);
}

TEST(Reader, IntegersAreWholeAndInRange) {
  for (const char* text :
       {"2.5", "-1", "11", "1e30", "18446744073709551615", "\"3\"", "true", "null", "[]", "{}"}) {
    const std::string message =
        input_error([&] { checked_integer(Json::parse(text), 0, 10, "x.json", "a.b"); });
    expect_message(message, {"x.json", "a.b", "from 0 to 10"});
  }
  EXPECT_EQ(checked_integer(Json(10), 0, 10, "", ""), 10);
}

TEST(Reader, AWordNamesItsAlternativesAndTheNearest) {
  const Json json = Json::parse(R"({"close": "befor", "other": "zzz", "kind": 3})");
  Reader reader(json, "x.json", "fusion");
  expect_message(input_error([&] {
                   reader.word_or("close", "after", {"after", "before"});
                 }),
                 {"x.json", "fusion.close", "'befor'", "after, before", "did you mean 'before'"});
  expect_message(input_error([&] {
                   reader.word_or("other", "after", {"after", "before"});
                 }),
                 {"fusion.other", "'zzz'", "after, before"});
  expect_message(input_error([&] {
                   reader.word_or("kind", "after", {"after", "before"});
                 }),
                 {"fusion.kind", "3", "after, before"});
}

TEST(Reader, AMissingKeyPointsToItsMisspelling) {
  const Json json = Json::parse(R"({"latency": 3})");
  Reader reader(json, "x.json", "inter");
  expect_message(input_error([&] { reader.require("latency_us"); }),
                 {"x.json", "inter.latency_us", "missing", "'latency'", "did you mean"});
}

TEST(Reader, AKeyInAnotherUnitIsRefusedWithTheFactor) {
  const Json json = Json::parse(R"({"latency_ms": 3})");
  Reader reader(json, "x.json", "inter");
  EXPECT_EQ(input_error([&] { reader.require("latency_us"); }),
            "x.json: inter.latency_us: missing (found 'latency_ms': did you mean 'latency_us'? 1 "
            "ms is 1000 us)");
}

TEST(Reader, AKeyOfAnotherObjectIsNamedByItsPath) {
  const Json json = Json::parse(R"({"nodes": 3, "notes": []})");
  Reader reader(json, "x.json", "");
  reader.has("notes");
  EXPECT_EQ(input_error([&] {
              reader.finish({"cluster.name", "cluster.nodes"});
            }),
            "x.json: nodes: unknown key (did you mean 'cluster.nodes'?)");
}

TEST(Reader, ANumberWithAUnitIsRefusedAsTheKeyHasIt) {
  for (const char* text : {"25Gbps", "25 gbit"}) {
    EXPECT_TRUE(input_error([&] {
                  checked_number(Json(text), {}, "x.json", "bandwidth_gbps");
                }).ends_with("from 0 to 1e15, without a unit: the key says which it is read in"));
  }
  EXPECT_FALSE(contains(input_error([] { checked_number(Json("fast"), {}, "x.json", "a"); }),
                        "without a unit"));
}

TEST(Reader, AnUnknownKeyPointsToTheKnownOne) {
  const Json json = Json::parse(R"({"bandwith": 3, "latency_us": 1})");
  Reader reader(json, "x.json", "inter");
  reader.has("latency_us");
  reader.has("bandwidth");
  expect_message(input_error([&] { reader.finish(); }),
                 {"x.json", "inter.bandwith", "unknown", "did you mean 'bandwidth'"});
}

// A list that names a key twice reads like a mistake of ours.
TEST(Reader, AnUnknownKeyListsEachKnownOneOnce) {
  const Json json = Json::parse(R"({"zzzzzzzzzz": 3, "nics": 2})");
  Reader reader(json, "x.json", "inter");
  reader.integer_or("nics", 1, 1, 4);
  reader.number_or("latency_us", 1, {});
  const std::string message = input_error([&] { reader.finish(); });
  expect_message(message, {"inter.zzzzzzzzzz", "nics", "latency_us"});
  EXPECT_EQ(message.find("nics"), message.rfind("nics")) << message;
}

TEST(Reader, NestedPlacesAreDotted) {
  const Json json = Json::parse(R"({"list": [{"a": {}}, 5], "object": 3})");
  Reader reader(json, "x.json", "top");
  expect_message(input_error([&] { reader.objects("list"); }), {"x.json: top.list[1]", "5"});
  expect_message(input_error([&] { reader.object("object"); }), {"top.object", "3", "an object"});
  expect_message(input_error([&] { reader.array("object"); }), {"top.object", "3", "a list"});
}

}  // namespace
}  // namespace syncline
