// check, plan and explain answer in the four forms of every verb, and what is allowed and rarely
// meant is said beside every answer.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/expect.h"
#include "tests/support/jobs.h"
#include "tests/support/program.h"

namespace syncline::cli {
namespace {

using Words = std::vector<std::string>;

// Encoding costs nothing here, which is worth a warning; DDP's first step takes longer.
constexpr const char* kScenario = R"({
  "name": "small",
  "workload": {"name": "two layers", "batch": 32, "forward_ms": 2, "tensors": [
    {"name": "b.w", "shape": [1000, 1000], "backward_us": 3000},
    {"name": "a.w", "shape": [500, 1000], "backward_us": 2000}]},
  "cluster": {"name": "four", "nodes": 4, "gpus_per_node": 1, "library": "links",
              "inter": {"latency_us": 10, "bandwidth_gbps": 10}},
  "strategies": [{"name": "plain"}, {"name": "half", "compression": {"codec": "fp16"}},
                 {"name": "ddp", "dialect": "pytorch", "config": {}}]})";
constexpr const char* kWarning =
    "strategy 'half': cluster.device.memory_gbytes_per_s is not given, encoding costs nothing";

class Answers : public testing::Test {
 protected:
  void SetUp() override { test::write_text(file_, kScenario); }

  std::string printed(const std::string& verb, const std::string& format) const {
    const std::string ran = test::syncline_out({verb, file_, "--format", format});
    return ran;
  }
  Json json(const std::string& verb) const { return test::syncline_json({verb, file_}); }

  test::Scratch scratch_;
  std::string file_ = scratch_.path("scenario.json");
};

TEST_F(Answers, WarningsAreInEveryForm) {
  for (const char* verb : {"run", "check", "explain", "tune"}) {
    const bool brief = verb == std::string("run") || verb == std::string("tune");
    EXPECT_TRUE(test::says(printed(verb, "table"), brief ? "2 notes and details: --verbose."
                                                         : std::string("Notes:\n- ") + kWarning))
        << verb;
    EXPECT_TRUE(test::says(printed(verb, "markdown"), "Notes:\n\n- strategy 'half'")) << verb;
    const Json warnings = json(verb).at("remarks");
    ASSERT_EQ(warnings.size(), 2U) << warnings;
    EXPECT_EQ(warnings[0], kWarning) << verb;
    const auto second = warnings[1].get<std::string>();
    EXPECT_TRUE(second.starts_with("strategy 'ddp': the first step")) << second;
    const auto csv = test::syncline_run({verb, file_, "--format", "csv"});
    EXPECT_EQ(csv.err, std::string("syncline: ") + kWarning + "\nsyncline: " + second + "\n")
        << verb;
    EXPECT_TRUE(test::lacks(csv.out, "encoding")) << verb;
  }
}

// Notes of the scenario and of its strategies are one list, which says each note once.
TEST_F(Answers, NotesAreOneListThatSaysEachOnce) {
  Json scenario = Json::parse(kScenario);
  scenario["strategies"].push_back(
      {{"name", "again"}, {"dialect", "pytorch"}, {"config", Json::object()}});
  test::write_text(file_, scenario.dump());
  const auto times = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  for (const char* verb : {"check", "explain"}) {
    const std::string text = printed(verb, "table");
    EXPECT_EQ(times(text, "Notes:"), 1) << text;
    EXPECT_EQ(times(text, "collectives are rings on the links as given"), 1) << text;
    EXPECT_TRUE(test::says(text, "strategies 'ddp' and 'again': collectives are rings")) << text;
  }
}

// Of the strategy that was asked for; nobody asked about the others.
TEST_F(Answers, WarningsOfOneStrategyAreItsOwn) {
  for (const char* verb : {"plan", "buckets", "explain"}) {
    const auto asked = [&](const std::string& strategy, const std::string& format) {
      const auto ran =
          test::syncline_run({verb, file_, "--strategy", strategy, "--format", format});
      EXPECT_EQ(ran.code, 0) << ran.err;
      return format == "csv" ? ran.err : ran.out;
    };
    EXPECT_TRUE(test::says(asked("half", "table"), std::string("Notes:\n- ") + kWarning)) << verb;
    EXPECT_TRUE(test::says(asked("half", "markdown"), "Notes:\n\n- strategy 'half'")) << verb;
    EXPECT_EQ(Json::parse(asked("half", "json")).at("remarks"), Json({kWarning})) << verb;
    EXPECT_EQ(asked("half", "csv"), std::string("syncline: ") + kWarning + "\n") << verb;
    EXPECT_FALSE(Json::parse(asked("plain", "json")).contains("remarks")) << verb;
  }
}

TEST_F(Answers, EmitPrintsThemNextToTheConfiguration) {
  const auto ran = test::syncline_run({"emit", file_, "--strategy", "ddp", "--dialect", "pytorch"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(Json::accept(ran.out)) << ran.out;
  EXPECT_TRUE(ran.err.starts_with("syncline: strategy 'ddp': the first step sums")) << ran.err;
  EXPECT_TRUE(test::lacks(ran.err, "'half'"));  // nobody asked for that one
}

// With an old torch one bucket takes a variable of the module's, which is no argument: whoever is
// given such a configuration is told, by either verb.
TEST_F(Answers, SettingsThatAreNoArgumentsArePrintedWithTheConfiguration) {
  Json scenario = Json::parse(kScenario);
  scenario["workload"]["torch"] = "1.13";
  scenario["cluster"]["inter"]["latency_us"] = 20000;  // nobody would send two
  scenario["strategies"] = {{{"name", "one"}, {"fusion", {{"rule", "one"}}}}};
  test::write_text(file_, scenario.dump());
  const char* note = "_DEFAULT_FIRST_BUCKET_BYTES is no argument";
  const auto emitted = test::syncline_run({"emit", file_, "--dialect", "pytorch"});
  EXPECT_EQ(emitted.code, 0) << emitted.err;
  EXPECT_TRUE(Json::parse(emitted.out).contains("_DEFAULT_FIRST_BUCKET_BYTES")) << emitted.out;
  EXPECT_TRUE(test::says(emitted.err, note));
  const auto file = test::syncline_run(
      {"emit", file_, "--dialect", "pytorch", "--python", scratch_.path("job.py")});
  EXPECT_TRUE(test::says(file.err, note));
  const std::string tuned =
      test::syncline_out({"tune", file_, "--emit", "pytorch", "--format", "json"});
  const Json found = Json::parse(tuned);
  EXPECT_TRUE(found.at("emitted").at("config").contains("_DEFAULT_FIRST_BUCKET_BYTES")) << found;
  EXPECT_TRUE(test::says(found.at("verdicts").dump(), note)) << found.at("verdicts");
}

TEST_F(Answers, ValidateTellsThemBelowItsTable) {
  const std::string ran =
      test::syncline_out({"validate", file_, "--set", "cluster.nodes=2", "--ranks", "2", "--warmup",
                          "1", "--repeats", "1", "--strategy", "half", "--format", "json"});
  EXPECT_EQ(Json::parse(ran).at("remarks"), Json({kWarning}));
}

TEST_F(Answers, ThePythonFileComesWithItsUse) {
  const std::string file = scratch_.path("job_sync.py");
  const std::string use =
      "in the job, on every rank: from job_sync import apply; model = apply(model, optimizer)\n";
  for (const Words& words : {Words{"tune", file_, "--emit", "pytorch", "--python", file},
                             {"emit", file_, "--dialect", "pytorch", "--python", file}}) {
    EXPECT_TRUE(test::failed(test::syncline_run(words), 0, use));
  }
}

TEST_F(Answers, CheckSaysWhatTheScenarioContains) {
  const Json object = json("check");
  EXPECT_EQ(object.at("verb"), "check");
  EXPECT_EQ(object.at("scenario"), "small");
  EXPECT_EQ(object.at("workload").at("gradients"), 2);
  EXPECT_EQ(object.at("workload").at("bytes"), 6000000);
  EXPECT_EQ(object.at("cluster").at("nodes"), 4);
  EXPECT_EQ(object.at("sweep_points"), 1);
  EXPECT_EQ(object.at("notes").at(0).at("dialect"), "pytorch");
  EXPECT_FALSE(object.at("workload").contains("frozen_bytes"));
  test::write_text(
      file_, test::replaced(kScenario, R"("name": "b.w",)", R"("name": "b.w", "frozen": true,)"));
  const Json frozen = json("check");
  EXPECT_EQ(frozen.at("workload").at("gradients"), 1);
  EXPECT_EQ(frozen.at("workload").at("frozen_parameters"), 1);
  EXPECT_EQ(frozen.at("workload").at("frozen_bytes").get<double>() +
                frozen.at("workload").at("bytes").get<double>(),
            6000000);
  EXPECT_TRUE(test::says(printed("check", "csv"), "strategy,dialect,note\r\nddp,pytorch,"));
  EXPECT_TRUE(test::says(printed("check", "markdown"), "# "));
}

// What computation and collectives lose to each other is the device's, not the plan's.
TEST_F(Answers, APlanKnowsNoInterference) {
  const auto operations = [&](const std::string& setting) {
    const std::string ran = test::syncline_out(
        {"plan", file_, "--strategy", "half", "--set", setting, "--format", "json"});
    return Json::parse(ran).at("plans").at(0).at("operations");
  };
  const Json plain = operations("cluster.device.overlap_slowdown=0");
  EXPECT_EQ(operations("cluster.device.overlap_slowdown=0.5"), plain);
  EXPECT_EQ(operations("cluster.device.sums_gbytes_per_s=0.1"), plain);
}

TEST_F(Answers, APlanHasItsOperationsInEveryForm) {
  const Json plan = json("plan").at("plans").at(0);
  EXPECT_EQ(plan.at("ranks"), 4);
  const Json& operations = plan.at("operations");
  const auto lines = [&](const std::string& text, const std::string& end) {
    std::size_t count = 0;
    for (std::size_t at = text.find(end); at != std::string::npos; at = text.find(end, at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(lines(printed("plan", "csv"), "\r\n"), operations.size() + 1);
  double backward = 0;
  std::int64_t bytes = 0;
  for (const auto& operation : operations) {
    if (operation.at("what").get<std::string>().starts_with("backward")) {
      backward += operation.at("seconds").get<double>();
    }
    bytes += operation.value("bytes", std::int64_t{0});
    for (const auto& before : operation.at("after")) EXPECT_LT(before, operation.at("op"));
  }
  EXPECT_NEAR(backward, 5e-3, 1e-12);
  EXPECT_EQ(bytes, 6000000);
}

TEST_F(Answers, AnExplanationHasItsFiguresAndShares) {
  const Json strategies = json("explain").at("strategies");
  ASSERT_EQ(strategies.size(), 3U);
  const auto rows = json("run").at("rows");
  for (std::size_t s = 0; s < strategies.size(); ++s) {
    EXPECT_EQ(strategies[s].at("name"), rows[s].at("strategy"));
    for (const char* figure : {"step_time_s", "step_time_low_s", "step_time_high_s"}) {
      EXPECT_EQ(strategies[s].at(figure), rows[s].at(figure));
    }
    EXPECT_EQ(strategies[s].at("lower_bound_s"), rows[s].at("lower_bound_s"));
    double sum = 0;
    for (const auto& [cause, share] : strategies[s].at("shares").items()) {
      sum += share.get<double>();
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    for (const auto& advice : strategies[s].at("advice")) {
      EXPECT_LT(advice.at("step_time_s"), strategies[s].at("step_time_s"));
    }
  }
  EXPECT_TRUE(test::says(printed("explain", "csv"), "strategy,step_time_s,lower_bound_s,bound_by"));
}

}  // namespace
}  // namespace syncline::cli
