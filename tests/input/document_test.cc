// Files and paths: what is loaded, what is refused, and which keys a sweep can reach.
#include "formats/input/document.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/full_scenario.h"
#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::input {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::full_scenario;
using test::input_error;
using test::small_scenario;

class DocumentFiles : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return scratch_.path(name); }
  void write(const std::string& name, const std::string& text) const {
    test::write_text(path(name), text);
  }
  std::string error(const std::string& name) const {
    return input_error([&] { parse_scenario(read_document(path(name))); });
  }
  Document document(const Json& scenario) const {
    write("scenario.json", scenario.dump());
    return read_document(path("scenario.json"));
  }
  // Of a scenario that lies beside these files.
  std::string error_beside(const Json& scenario) const {
    return input_error([&] { parse_scenario(document(scenario)); });
  }

  const test::Scratch scratch_;
};

TEST_F(DocumentFiles, AMissingFileIsNamed) {
  EXPECT_TRUE(contains(error("none.json"), path("none.json")));
  EXPECT_TRUE(contains(error("none.json"), "no such file"));
}

TEST_F(DocumentFiles, AFolderIsNoFile) {
  fs::create_directory(path("folder.json"));
  EXPECT_TRUE(contains(error("folder.json"), path("folder.json")));
  EXPECT_TRUE(contains(error("folder.json"), "folder, expected"));
}

TEST_F(DocumentFiles, APathBelowAFileIsMissing) {
  write("a.json", "{}");
  EXPECT_TRUE(contains(error("a.json/b.json"), "a.json/b.json"));
}

TEST_F(DocumentFiles, AnEmptyFileSaysSo) {
  write("empty.json", "");
  write("blank.json", " \n\t\r\n");
  for (const char* name : {"empty.json", "blank.json"}) {
    EXPECT_TRUE(contains(error(name), std::string(name) + ": empty file")) << error(name);
  }
}

// Sparse on disk: the size alone is enough to refuse it.
TEST_F(DocumentFiles, AHugeFileIsNotRead) {
  write("huge.json", "{");
  fs::resize_file(path("huge.json"), static_cast<std::uintmax_t>(kLargestFile) + 1);
  EXPECT_TRUE(contains(error("huge.json"), "huge.json"));
  EXPECT_TRUE(contains(error("huge.json"), "expected at most 64 MiB"));
}

TEST_F(DocumentFiles, EndlessDevicesAreCutOff) {
  if (!fs::exists("/dev/zero")) GTEST_SKIP() << "no /dev/zero here";
  EXPECT_TRUE(contains(input_error([] { read_json_file("/dev/zero"); }), "more than 64 MiB"));
}

TEST_F(DocumentFiles, PartsAreFoundNextToTheScenario) {
  const Json full = full_scenario();
  fs::create_directory(path("parts"));
  write("parts/w.json", full["workload"].dump());
  write("parts/c.json", full["cluster"].dump());
  Json scenario = full;
  scenario["workload"] = "parts/w.json";
  scenario["cluster"] = "parts/../parts/c.json";
  const Document read = document(scenario);
  EXPECT_EQ(read.root, full);
  EXPECT_EQ(read.workload_file, path("parts/w.json"));
  EXPECT_EQ(read.cluster_file, path("parts/c.json"));
  EXPECT_NO_THROW(parse_scenario(read));
}

TEST_F(DocumentFiles, AMissingPartNamesBothFiles) {
  Json scenario = small_scenario();
  scenario["cluster"] = "none.json";
  EXPECT_TRUE(contains(error_beside(scenario), path("scenario.json") + ": cluster"));
  EXPECT_TRUE(contains(error_beside(scenario), path("none.json")));
}

TEST_F(DocumentFiles, AMistakeInAPartNamesThePart) {
  Json scenario = small_scenario();
  Json cluster = scenario["cluster"];
  cluster["inter"]["latency_us"] = -1;
  write("c.json", cluster.dump());
  scenario["cluster"] = "c.json";
  EXPECT_TRUE(contains(error_beside(scenario), path("c.json") + ": inter.latency_us"))
      << error_beside(scenario);
}

TEST_F(DocumentFiles, KeysNextToFileReplaceItsOwn) {
  Json scenario = small_scenario();
  write("c.json", scenario["cluster"].dump());
  write("w.json", scenario["workload"].dump());
  scenario["cluster"] = Json::parse(R"({"file": "c.json", "nodes": 6})");
  scenario["workload"] = Json::parse(R"({"file": "w.json", "batch": 64, "update_ms": 2})");
  const Scenario read = parse_scenario(document(scenario));
  EXPECT_EQ(read.cluster.nodes, 6);
  EXPECT_EQ(read.cluster.name, "c");
  EXPECT_EQ(read.cluster.tiers.at(0).span, 6);
  EXPECT_EQ(read.workload.batch, 64);
  EXPECT_DOUBLE_EQ(read.workload.update, 0.002);
}

TEST_F(DocumentFiles, KeysNextToFileGoAsDeepAsBothHaveObjects) {
  Json scenario = small_scenario();
  Json cluster = scenario["cluster"];
  cluster["device"] = "v100-sxm";
  cluster["jitter"] = {{"distribution", "normal"}, {"relative", 0.05}};
  write("c.json", cluster.dump());
  scenario["cluster"] = Json::parse(R"({"file": "c.json", "inter": {"bandwidth_gbps": 16},
                                        "device": {"launch_us": 8}, "jitter": {"relative": 0}})");
  const Scenario read = parse_scenario(document(scenario));
  scenario["cluster"] = "c.json";
  const Scenario plain = parse_scenario(document(scenario));
  EXPECT_DOUBLE_EQ(read.cluster.tiers.at(0).bandwidth, 2 * plain.cluster.tiers.at(0).bandwidth);
  EXPECT_DOUBLE_EQ(read.cluster.tiers.at(0).latency, plain.cluster.tiers.at(0).latency);
  EXPECT_GT(plain.cluster.device.memory, 0);
  EXPECT_DOUBLE_EQ(read.cluster.device.memory, plain.cluster.device.memory);
  EXPECT_EQ(read.cluster.jitter.kind, Jitter::Kind::kNone);
}

TEST_F(DocumentFiles, ADeepMistakeIsTheFilesOrTheScenarios) {
  Json scenario = small_scenario();
  Json cluster = scenario["cluster"];
  cluster["inter"]["latency_us"] = -1;
  write("c.json", cluster.dump());
  scenario["cluster"] = Json::parse(R"({"file": "c.json", "inter": {"bandwidth_gbps": -16}})");
  try {
    parse_scenario(document(scenario));
    FAIL() << "no mistake was found";
  } catch (const InputMistakes& mistakes) {
    ASSERT_EQ(mistakes.below.size(), 1U);
    const std::string both = std::string(mistakes.what()) + "\n" + mistakes.below[0];
    EXPECT_TRUE(contains(both, path("c.json") + ": inter.latency_us: ")) << both;
    EXPECT_TRUE(contains(both, path("scenario.json") + ": cluster.inter.bandwidth_gbps: ")) << both;
  }
}

// The mistake stands in the scenario, so the message must not send its author to the other file.
TEST_F(DocumentFiles, AMistakeInAReplacedKeyNamesTheScenario) {
  Json scenario = small_scenario();
  write("c.json", scenario["cluster"].dump());
  scenario["cluster"] = Json::parse(R"({"file": "c.json", "nodes": -6})");
  EXPECT_TRUE(contains(error_beside(scenario), "nodes: found -6"));
  EXPECT_TRUE(contains(error_beside(scenario), path("scenario.json"))) << error_beside(scenario);
}

TEST_F(DocumentFiles, APartIsAnObject) {
  Json scenario = small_scenario();
  write("list.json", "[1, 2]");
  scenario["cluster"] = "list.json";
  EXPECT_TRUE(contains(error_beside(scenario), path("list.json")));
  for (const char* wrong : {"3", "null", "[]", "true", R"({"file": 3})", R"({"file": null})",
                            R"({"file": {}})", R"({"file": ""})", R"("")"}) {
    scenario["cluster"] = Json::parse(wrong);
    EXPECT_TRUE(contains(error_beside(scenario), "cluster")) << wrong << error_beside(scenario);
  }
}

TEST(DocumentText, ACutFileIsRefusedWhereverItIsCut) {
  const std::string text(test::kFullScenarioText);
  ASSERT_EQ(test::error_of_text(text), "");
  for (std::size_t length = 0; length < text.size(); ++length) {
    const std::string message = test::error_of_text(text.substr(0, length));
    ASSERT_TRUE(message.starts_with("x.json: ")) << length << ": " << message;
  }
}

TEST(DocumentText, ASyntaxErrorNamesLineAndColumn) {
  const std::string message = test::error_of_text("{\n  \"name\": \"a\",\n  \"b\" 3\n}");
  EXPECT_TRUE(contains(
      message, "x.json: not valid JSON: a colon is missing after '\"b\"' (line 3, column 7)"))
      << message;
  EXPECT_TRUE(contains(test::error_of_text("{\"name\": "), "ends too early"));
}

TEST(DocumentText, TextAfterTheEndIsRefused) {
  EXPECT_NE(test::error_of_text(std::string(test::kFullScenarioText) + " {}"), "");
  EXPECT_EQ(test::error_of_text(std::string(test::kFullScenarioText) + " \n\n"), "");
}

TEST(DocumentText, RepeatedKeysAreNamed) {
  const auto error = [](const std::string& text) {
    return input_error([&] { parse_json_text("x.json", text); });
  };
  EXPECT_TRUE(contains(error(R"({"a": 1, "b": 2, "a": 3})"), "'a' is given twice"));
  EXPECT_TRUE(contains(error(R"({"o": [{"a": 1}, {"c": 1, "c": 1}]})"), "'c' is given twice"));
  EXPECT_TRUE(contains(error(R"({"a": {"x": 1}, "a": {"y": 1}})"), "'a' is given twice"));
  EXPECT_EQ(error(R"({"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 1}]})"), "");
  EXPECT_TRUE(contains(error(R"({"a": 1, "\u0061": 2})"), "'a' is given twice"));
}

TEST(DocumentText, DeepNestingIsRefusedNotFollowed) {
  const std::size_t deep = 100000;
  std::string objects;
  for (std::size_t i = 0; i < deep; ++i) objects += "{\"a\":";
  for (const std::string& text :
       {std::string(deep, '['), std::string(deep, '[') + std::string(deep, ']'),
        objects + "1" + std::string(deep, '}'), objects}) {
    EXPECT_TRUE(test::error_of_text(text).starts_with("x.json: "));
  }
  const std::string closed = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_TRUE(contains(test::error_of_text(closed), "64 levels deep"));
}

TEST(DocumentText, AByteOrderMarkIsSkipped) {
  EXPECT_EQ(test::error_of_text("\xEF\xBB\xBF" + std::string(test::kFullScenarioText)), "");
  EXPECT_NE(test::error_of_text("\xFF\xFE{\0}\0"), "");
}

TEST(DocumentText, BytesThatAreNoUtf8AreRefused) {
  for (const char* bytes : {"\xff", "\xc3(", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xc0\xaf"}) {
    const std::string text = "{\"name\": \"" + std::string(bytes) + "\"}";
    EXPECT_TRUE(test::error_of_text(text).starts_with("x.json: not valid JSON"));
  }
  EXPECT_NE(test::error_of_text(std::string("{\"name\": \"a\0b\"}", 15)), "");
}

TEST(DocumentText, NumbersBeyondAllBoundsAreRefused) {
  Json scenario = small_scenario();
  scenario["cluster"]["inter"]["bandwidth_gbps"] = 12345;
  for (const char* number : {"1e400", "-1e400", "1e999999999", "NaN", "Infinity", "-Infinity",
                             "0x10", "1.", ".5", "+1", "01"}) {
    std::string text = scenario.dump();
    text.replace(text.find("12345"), 5, number);
    EXPECT_TRUE(test::error_of_text(text).starts_with("x.json: ")) << number;
  }
}

Document document() { return document_from_text("x.json", full_scenario().dump()); }

TEST(SetKey, ReachesKeysByNameAndByIndex) {
  Document changed = document();
  set_key(changed, "cluster.inter.bandwidth_gbps", 25);
  set_key(changed, "strategies.fused.streams", 4);
  set_key(changed, "strategies.fused.fusion.size_mb", 2.5);
  set_key(changed, "strategies.0.algorithm", "to_one");
  set_key(changed, "workload.tensors.scale.backward_us", 1);
  set_key(changed, "seed", 9);
  const Json& root = changed.root;
  EXPECT_EQ(root["cluster"]["inter"]["bandwidth_gbps"], 25);
  EXPECT_EQ(root["strategies"][1]["streams"], 4);
  EXPECT_EQ(root["strategies"][1]["fusion"]["size_mb"], 2.5);
  EXPECT_EQ(root["strategies"][0]["algorithm"], "to_one");
  EXPECT_EQ(root["workload"]["tensors"][1]["backward_us"], 1);
  EXPECT_EQ(root["seed"], 9);
}

TEST(SetKey, OpensObjectsThatMayBeLeftOut) {
  Document changed = document_from_text("x.json", small_scenario().dump());
  set_key(changed, "strategies.plain.fusion.size_mb", 4);
  set_key(changed, "cluster.device.launch_us", 5);
  set_key(changed, "cluster.jitter.relative", 0.1);
  set_key(changed, "cluster.intra.latency_us", 1);
  set_key(changed, "cluster.intra.bandwidth_gbps", 100);
  set_key(changed, "training.step", 5);
  set_key(changed, "training.learning_rate.initial", 0.2);
  set_key(changed, "strategies.plain.local_sgd.period", 4);
  set_key(changed, "simulation.periods", 3);
  const Scenario scenario = parse_scenario(changed);
  EXPECT_EQ(scenario.strategies[0].fusion.size, 4 * kMiB);
  EXPECT_EQ(scenario.strategies[0].local_sgd.period, 4);
  EXPECT_DOUBLE_EQ(scenario.cluster.device.launch, 5e-6);
  EXPECT_EQ(scenario.simulation.periods, 3);
}

TEST(SetKey, APathToNowhereIsNamedWithTheNearestKey) {
  const auto error = [](const std::string& path) {
    return input_error([&] {
      Document changed = document();
      set_key(changed, path, 1);
      parse_scenario(changed);
    });
  };
  EXPECT_TRUE(contains(error("clutser.nodes"), "did you mean 'cluster'"));
  EXPECT_TRUE(contains(error("cluster.interr.latency_us"), "did you mean 'inter'"));
  EXPECT_TRUE(contains(error("cluster.inter.latency"), "did you mean 'latency_us'"));
  EXPECT_TRUE(contains(error("strategies.fussed.streams"), "did you mean 'fused'"));
  EXPECT_TRUE(contains(error("strategies.fused.stream"), "did you mean 'streams'"));
  for (const char* path : {"", ".", "..", "cluster.nodes.x", "cluster.nodes.x.y", "strategies.99",
                           "strategies.99.streams", "strategies.99999999999999999999.streams",
                           "workload.tensors.-1.shape", "strategies.fused.fusion.ends.0", "name.a",
                           "cluster..nodes"}) {
    const std::string message = error(path);
    EXPECT_TRUE(message.starts_with("x.json: ")) << "'" << path << "': " << message;
  }
}

}  // namespace
}  // namespace syncline::input
