// The trace as a reader of profiles takes it. The demands are those of HolisticTraceAnalysis'
// loader, said in our own words (github.com/facebookresearch/HolisticTraceAnalysis, MIT, read in
// 2026: hta/common/trace_file.py, trace_parser.py, trace.py, trace_filter.py, utils/utils.py):
// - "distributedInfo" has "rank", an integer of 0 or more; its fast reader of the head stops at
//   "traceEvents", so it must stand ahead of them. One file is one rank.
// - An event is a row if it has "dur" and "cat"; "cat" is not "Trace".
// - Times become whole microseconds: the begin rounded up, the end down.
// - "args" has "stream" and "correlation", integers: above 0 it is the device's, -1 the host's.
// - A kernel and its launch, which is the host's, have one correlation; others have -1.
// - "ProfilerStep#N" is a step; a launch lies in it from its begin to ahead of its end, and a
//   kernel belongs to the step of its launch.
// - Of several steps the last one is dropped, with every kernel that was launched in it or has no
//   launch.
// - A kernel whose name begins with "nccl", or has "gloo:", is communication, one with "Memcpy" or
//   "Memset" memory, others computation.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "core/executor.h"
#include "core/metrics.h"
#include "formats/input/document.h"
#include "reports/trace.h"
#include "tests/reports/small_report.h"
#include "tests/reports/traced_plan.h"
#include "tests/support/random_scenario.h"

namespace syncline::reports {
namespace {

struct Event {
  std::string name;
  double begin = 0, end = 0;  // whole microseconds
  std::int64_t stream = -1, correlation = -1;
  std::string step;  // "ProfilerStep#N"; empty: none
  std::int64_t nth = -1;
};

struct Profile {
  std::vector<Event> host, kernels;
};

bool is_step(const Event& event) { return event.name.starts_with("ProfilerStep"); }

bool is_communication(const Event& event) {
  return event.name.starts_with("nccl") || event.name.find("gloo:") != std::string::npos;
}

std::string step_at(const std::vector<Event>& host, double time) {
  std::string step;
  for (const auto& event : host) {
    if (is_step(event) && event.begin <= time && time < event.end) step = event.name;
  }
  return step;
}

// All rows, each kernel with the step of its launch.
Profile loaded(const Json& trace) {
  Profile profile;
  for (const auto& json : trace.at("traceEvents")) {
    if (!json.contains("dur") || !json.contains("cat") || json.at("cat") == "Trace") continue;
    Event event;
    event.name = json.at("name").get<std::string>();
    const double begin = json.at("ts").get<double>();
    event.begin = std::ceil(begin);
    event.end = std::floor(begin + json.at("dur").get<double>());
    const Json args = json.value("args", Json::object());
    for (const char* key : {"stream", "correlation"}) {
      EXPECT_TRUE(!args.contains(key) || args.at(key).is_number_integer()) << json;
    }
    event.stream = args.value("stream", std::int64_t{-1});
    event.correlation = args.value("correlation", std::int64_t{-1});
    event.nth = args.value("step", std::int64_t{-1});
    EXPECT_NE(event.stream, 0) << "neither the host's nor a kernel: " << json;
    (event.stream < 0 ? profile.host : profile.kernels).push_back(event);
  }
  for (auto& event : profile.host) event.step = step_at(profile.host, event.begin);
  std::map<std::int64_t, std::string> launched;
  for (const auto& event : profile.host) {
    if (event.correlation == -1) continue;
    EXPECT_TRUE(launched.emplace(event.correlation, event.step).second) << event.name;
  }
  for (auto& kernel : profile.kernels) {
    const auto launch = launched.find(kernel.correlation);
    if (launch != launched.end()) kernel.step = launch->second;
  }
  return profile;
}

// What is left for its analyses: kernels whose launch lies ahead of the last step.
std::vector<Event> analysed(const Profile& profile) {
  double last = -1;
  std::set<std::string> steps;
  for (const auto& event : profile.host) {
    if (!is_step(event)) continue;
    last = std::max(last, event.begin);
    steps.insert(event.name);
  }
  if (steps.size() < 2) return profile.kernels;
  std::vector<Event> kept;
  for (const auto& kernel : profile.kernels) {
    for (const auto& event : profile.host) {
      if (event.correlation == kernel.correlation && event.begin < last) kept.push_back(kernel);
    }
  }
  return kept;
}

// One strategy of a random scenario, as the model runs it; periods of 1 us at least.
measure::Report random_report(std::uint64_t seed) {
  const Json root = test::random_small_scenario(seed, 16);
  const auto document = input::document_from_text("random.json", root.dump());
  const Scenario scenario = input::parse_scenario(document);
  const auto executor = run::make_model_executor({scenario.cluster, scenario.simulation, 1});
  collective::CostCache cache(scenario.cluster);
  auto evaluated =
      measure::evaluate_strategy(scenario, scenario.strategies.back(), *executor, cache);
  measure::Report report = test::report_of({});
  report.traced_workload = scenario.workload;
  report.traced.push_back({"s", std::move(evaluated.plan), std::move(evaluated.timeline)});
  return report;
}

TEST(TraceAsAProfile, TheHeadNamesTheRankBeforeTheEvents) {
  const std::string text = chrome_trace(test::traced_report({"dgc"}, {5}, 2, 2));
  const Json trace = Json::parse(text);
  EXPECT_EQ(trace["distributedInfo"]["rank"], 5);
  EXPECT_EQ(trace["distributedInfo"]["world_size"], 16);
  EXPECT_EQ(trace["baseTimeNanoseconds"], 0);
  EXPECT_LT(text.find("\"distributedInfo\""), text.find("\"traceEvents\""));
}

TEST(TraceAsAProfile, EveryKernelIsLaunchedOnceInItsStep) {
  std::size_t kernels = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const measure::Report report = random_report(seed);
    const auto& traced = report.traced[0];
    const Profile profile = loaded(Json::parse(chrome_trace(report)));
    for (const auto& kernel : profile.kernels) {
      const std::int64_t period = kernel.nth / traced.plan.steps;
      ASSERT_EQ(kernel.step, "ProfilerStep#" + std::to_string(period)) << kernel.name;
      ++kernels;
    }
  }
  EXPECT_GT(kernels, 2000U);
}

// None of them is lost but those of the last step, none is there twice, and exchanges are told from
// the rest.
TEST(TraceAsAProfile, OnlyTheLastStepIsLost) {
  for (std::uint64_t seed = 200; seed < 300; ++seed) {
    const measure::Report report = random_report(seed);
    const auto& traced = report.traced[0];
    const int last = static_cast<int>(traced.timeline.period_ends.size()) - 1;
    std::multiset<bool> wanted;  // whether it is an exchange
    for (const auto& span : traced.timeline.spans) {
      const auto& work = traced.plan.ops[static_cast<std::size_t>(span.op)].work;
      const bool host = plan::reason_of(work) == plan::Busy::Reason::kHost ||
                        plan::reason_of(work) == plan::Busy::Reason::kTick;
      if (host || (span.period == last && last > 0)) continue;
      wanted.insert(std::holds_alternative<collective::Collective>(work));
    }
    std::multiset<bool> found;
    for (const auto& kernel : analysed(loaded(Json::parse(chrome_trace(report))))) {
      found.insert(is_communication(kernel));
    }
    ASSERT_EQ(found, wanted);
  }
}

TEST(TraceAsAProfile, GloosCollectivesAreNamedSo) {
  measure::Report report = test::traced_report({"dgc, measured"}, {0}, 2, 2);
  report.executor = "gloo";
  std::set<std::string> exchanges;
  for (const auto& kernel : loaded(Json::parse(chrome_trace(report))).kernels) {
    if (is_communication(kernel)) exchanges.insert(kernel.name);
  }
  EXPECT_EQ(exchanges, std::set<std::string>{"gloo:all_gather bucket 0"});
}

}  // namespace
}  // namespace syncline::reports
