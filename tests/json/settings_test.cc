// YAML and TOML as frameworks' settings are written in them, and what is no such text.
#include "formats/json/text.h"

#include <gtest/gtest.h>

#include <ctime>

#include "core/base/error.h"
#include "tests/support/text.h"

namespace syncline {
namespace {

using test::contains;

template <typename Read>
std::string refusal(Read read, const std::string& text) {
  try {
    return "read as " + read("x", text).dump();
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(Settings, YamlIsRead) {
  const Json read = parse_yaml("x", R"(# of a job
---
model:   # its sizes
  num_layers: 24
  ffn: null
  "quoted key": 'a # b: c'
  eps: 1.e-5
  lr: 2.5e-4
  on: True
  off: No
  name: "llama: 3"
  path: ${LOAD}/x
  script: |
    not: read
      at all
  deeper:
    list: [1, [2, 3], {a: b, 'c': 4}]
    long: [1,
      2]
  items:
  - one
  - a: 1
    b: 2
  -
    - 7
last: -3
)");
  EXPECT_EQ(read, Json::parse(R"({"model": {"num_layers": 24, "ffn": null,
    "quoted key": "a # b: c", "eps": 1e-5, "lr": 2.5e-4, "on": true, "off": false,
    "name": "llama: 3", "path": "${LOAD}/x",
    "script": "not: read\n  at all\n",
    "deeper": {"list": [1, [2, 3], {"a": "b", "c": 4}], "long": [1, 2]},
    "items": ["one", {"a": 1, "b": 2}, [7]]}, "last": -3})"));
  EXPECT_EQ(parse_yaml("x", "# nothing\n"), Json::object());
}

TEST(Settings, TomlIsRead) {
  const Json read = parse_toml("x", R"(# of a job
title = "a \"b\" # c"
[model]  # its name
name = 'llama3'
flavor = "70B"
converters = ["float8", # and
  "mx",
]
[training.deep]
steps = 1_000
lr = -1.5e-4
"quoted key" = true
point = {x = 1, y.z = 2}
text = """
two
lines"""
[[list]]
a = 1
[[list]]
a = 2
)");
  // Tables have no order.
  EXPECT_EQ(nlohmann::json::parse(read.dump()), nlohmann::json::parse(R"({"title": "a \"b\" # c",
    "model": {"name": "llama3", "flavor": "70B", "converters": ["float8", "mx"]},
    "training": {"deep": {"steps": 1000, "lr": -1.5e-4, "quoted key": true,
                          "point": {"x": 1, "y": {"z": 2}}, "text": "two\nlines"}},
    "list": [{"a": 1}, {"a": 2}]})"));
}

TEST(Settings, MistakesAreNamedByTheirLine) {
  EXPECT_EQ(refusal(parse_yaml, "a: 1\na: 2"), "x: line 2: the key 'a' stands twice");
  EXPECT_EQ(refusal(parse_yaml, "a: 1\n  b: 2"), "x: line 2: illegal map value");
  EXPECT_EQ(refusal(parse_yaml, "a: 1\nb: {{place}}/x\nc: {{other}}/y"),
            "x: line 2: a template: fill in {{place}} first");
  EXPECT_EQ(refusal(parse_yaml, "a: llama: 3"), "x: line 1: illegal map value");
  EXPECT_EQ(refusal(parse_yaml, "a: [1, 2"), "x: line 1: end of sequence flow not found");
  EXPECT_EQ(refusal(parse_yaml, "a: [1 2]]"), "x: line 1: illegal flow end");
  EXPECT_EQ(refusal(parse_yaml, "? [a]\n: 1"), "x: line 1: a key that is no word");
  const auto toml = [](const char* text, const char* line, const char* what) {
    const std::string said = refusal(parse_toml, text);
    EXPECT_TRUE(said.starts_with("x: line " + std::string(line) + ": ")) << said;
    EXPECT_TRUE(contains(said, what)) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  };
  toml("a = 1\na = 2", "2", "cannot redefine existing integer 'a'");
  toml("a = 1\n[a.b]", "2", "cannot redefine existing integer 'a.b' as table");
  toml("a 1", "1", "expected '=', saw '1'");
  toml("\n= 1", "2", "expected keys");
  toml("a = ", "1", "encountered end-of-file");
  toml("a = 'b", "1", "parsing string: encountered end-of-file");
  toml("a = [1, 2", "1", "parsing array: encountered end-of-file");
  toml("a = 1 b = 2", "1", "expected a comment or whitespace, saw 'b'");
  toml("a = word", "1", "could not determine value type");
}

// An alias repeats what it names, but not without end.
TEST(Settings, AliasesAreReadAndCounted) {
  EXPECT_EQ(parse_yaml("x", "a: &n [1, 2]\nb: *n"), Json::parse(R"({"a": [1, 2], "b": [1, 2]})"));
  std::string laughs = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int k = 0; k < 9; ++k) laughs += ", " + before;
    laughs += "]\n";
  }
  EXPECT_TRUE(contains(refusal(parse_yaml, laughs), "more than 100000 values"));
}

// Nothing of this may take long, or end the program.
TEST(Settings, HostileTextsAreRefused) {
  const std::string many(100000, '[');
  EXPECT_EQ(refusal(parse_yaml, "a: " + many), "x: line 1: too many levels");
  EXPECT_EQ(refusal(parse_toml, "a = " + many), "x: line 1: more than 64 levels");
  std::string deep, lines;
  for (int i = 0; i < 200; ++i) deep += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_TRUE(contains(refusal(parse_yaml, deep), "more than 64 levels"));
  for (int i = 0; i < 30000; ++i) lines += "\n";
  EXPECT_EQ(refusal(parse_yaml, lines), "x: more than 20000 lines");
  EXPECT_TRUE(contains(refusal(parse_toml, lines), "more than 20000 lines"));
  EXPECT_EQ(refusal(parse_yaml, "a: \xff"), "x: not UTF-8 (Latin-1?)");
  EXPECT_EQ(refusal(parse_toml, "a = '\xff'"), "x: not UTF-8 (Latin-1?)");
  std::string keys;
  for (int i = 0; i < 100; ++i) keys += "a.";
  EXPECT_EQ(refusal(parse_toml, keys + "a = 1"), "x: line 1: more than 64 levels");
  for (const char* text : {"a: 'b", "a: \"", ": 1", "-", "- - - a: b", "a: {", "\t", "a:\n- b\n c",
                           "? a", "[", "{a: [}", "'"}) {
    (void)refusal(parse_yaml, text);
  }
  for (const char* text : {"[", "[[", "[a", "[[a]", "a.", "a.=", "a = {", "a = {b", "a = {b = ",
                           "a = [", "a = \"\\", "\"", "a = '''", "[[a]]\n[a]\n[[a]]", "a = ]"}) {
    (void)refusal(parse_toml, text);
  }
}

// Levels are counted before a parser recurses into them.
TEST(Settings, NestingIsBoundedBeforeItIsParsed) {
  std::string dots, braces, entities = "<!DOCTYPE a [<!ENTITY x0 'x'>";
  for (int i = 0; i < 100000; ++i) dots += "a.";
  for (int i = 0; i < 100000; ++i) braces += "a = {";
  for (int i = 0; i < 60000; ++i) {
    entities += "<!ENTITY x" + std::to_string(i + 1) + " '&x" + std::to_string(i) + ";'>";
  }
  EXPECT_EQ(refusal(parse_toml, "b = 1\n" + dots + "a = 1"), "x: line 2: more than 64 levels");
  EXPECT_EQ(refusal(parse_toml, "[" + dots + "a]\nb = 1"), "x: line 1: more than 64 levels");
  EXPECT_EQ(refusal(parse_toml, "[[" + dots + "a]]\nb = 1"), "x: line 1: more than 64 levels");
  EXPECT_EQ(refusal(parse_toml, "x = {" + dots + "a = 1}"), "x: line 1: more than 64 levels");
  EXPECT_EQ(refusal(parse_toml, braces), "x: line 1: more than 64 levels");
  const std::string declares =
      "x: line 1: a DOCTYPE that declares anything is not read: leave out what is in its []";
  EXPECT_EQ(refusal(parse_xml, entities + "]><a>&x60000;</a>"), declares);
  EXPECT_EQ(refusal(parse_xml, entities + "]><a b='&x60000;'/>"), declares);
  EXPECT_EQ(refusal(parse_xml, "<!DOCTYPE a [<!ATTLIST a b CDATA '1'>]><a/>"), declares);
  EXPECT_EQ(parse_xml("x", "<!DOCTYPE a SYSTEM 'https://simgrid.org/simgrid.dtd'><a/>").at("tag"),
            "a");
}

// Dots and brackets in quotes and comments are text.
TEST(Settings, QuotedDotsAreNoLevels) {
  const std::string dots(100, '.'), open(100, '[');
  for (const std::string quote : {"\"", "'", "\"\"\"", "'''"}) {
    const std::string text = dots + open;
    const Json read = parse_toml("x", "a = " + quote + text + quote + " # " + text + "\nb = 2");
    EXPECT_EQ(read.at("a"), text);
    EXPECT_EQ(read.at("b"), 2);
  }
  EXPECT_EQ(parse_toml("x", "a = \"\\\"" + open + "\"").at("a"), "\"" + open);
  std::string numbers = "a = [0.5";
  for (int i = 0; i < 100; ++i) numbers += ", 1.5";
  EXPECT_EQ(parse_toml("x", numbers + "]").at("a").size(), 101U);
}

// Twice the keys take about twice as long: a look through all others at each key would take a
// hundred times what reading takes.
TEST(Settings, WideTextsTakeTimeByTheirSize) {
  constexpr int kMany = 90000;
  std::string toml = "x = {", yaml = "x: {", xml = "<a";
  for (int i = 0; i < kMany; ++i) {
    const std::string key = "k" + std::to_string(i);
    toml += (i == 0 ? "" : ", ") + key + " = 1";
    yaml += (i == 0 ? "" : ", ") + key + ": 1";
    xml += " " + key + "='1'";
  }
  const auto seconds = [](auto read) {
    const std::clock_t begin = std::clock();
    read();
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  constexpr double kLinear = 2;  // seconds of the processor; a tenth of it is needed
  const std::string many = "x: an object of 90000 keys, expected at most 5000";
  EXPECT_LT(seconds([&] { EXPECT_EQ(refusal(parse_toml, toml + "}"), many); }), kLinear);
  EXPECT_LT(seconds([&] { EXPECT_EQ(refusal(parse_yaml, yaml + "}"), many); }), kLinear);
  EXPECT_LT(seconds([&] { EXPECT_EQ(parse_xml("x", xml + "/>").at("attributes").size(), kMany); }),
            kLinear);
  for (int i = 0; i < kMany; ++i) xml += " l" + std::to_string(i) + "='1'";
  EXPECT_EQ(refusal(parse_xml, xml + "/>"), "x: line 1: more than 100000 values");
}

TEST(Settings, XmlIsRead) {
  const Json read = parse_xml("x", R"(<?xml version="1.0"?>
<!-- </a> --><a b="1" c="&lt;x&#32;y"> text
  <d/><e f=''><d g="2"/></e>
</a>)");
  EXPECT_EQ(read, Json::parse(R"({"tag": "a", "attributes": {"b": "1", "c": "<x y"}, "inside": [
    {"tag": "d", "attributes": {}, "inside": []},
    {"tag": "e", "attributes": {"f": ""}, "inside": [
      {"tag": "d", "attributes": {"g": "2"}, "inside": []}]}]})"));
  EXPECT_EQ(refusal(parse_xml, "<a>\n<b></a>"), "x: line 2: mismatched tag");
  EXPECT_EQ(refusal(parse_xml, "<a b='1' b='2'/>"), "x: line 1: duplicate attribute");
  EXPECT_EQ(refusal(parse_xml, "<a b='\xff'/>"), "x: not UTF-8 (Latin-1?)");
  EXPECT_EQ(refusal(parse_xml, "<a/><b/>"), "x: line 1: junk after document element");
  std::string deep;
  for (int i = 0; i < 1000000; ++i) deep += "<a>";
  EXPECT_EQ(refusal(parse_xml, deep), "x: line 1: more than 64 levels");
}

TEST(Settings, NumbersAndTexts) {
  EXPECT_EQ(number_or_text("1_000"), 1000);
  EXPECT_EQ(number_or_text("+5"), 5);
  EXPECT_EQ(number_or_text("1e-3"), 1e-3);
  EXPECT_EQ(number_or_text("1.5.2"), "1.5.2");
  EXPECT_EQ(number_or_text("inf"), "inf");
  EXPECT_EQ(number_or_text("e"), "e");
  EXPECT_EQ(number_or_text("99999999999999999999999"), 1e23);
  EXPECT_EQ(number_or_text(""), "");
}

}  // namespace
}  // namespace syncline
