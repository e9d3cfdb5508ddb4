#include "reports/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "reports/gantt.h"
#include "tests/reports/small_report.h"
#include "tests/reports/traced_plan.h"
#include "tests/support/dice.h"
#include "tests/support/expect.h"

namespace syncline::reports {
namespace {

constexpr std::size_t kLimit = 10'000'000;

using test::traced_report;

std::vector<Json> events(const Json& trace, const std::string& phase) {
  std::vector<Json> found;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == phase) found.push_back(event);
  }
  return found;
}

// What the plan's operations are, without the bars of the steps and the launches.
std::vector<Json> operations(const Json& trace) {
  auto found = events(trace, "X");
  std::erase_if(found, [](const Json& event) {
    return event["cat"] == "user_annotation" || event["cat"] == "cuda_runtime";
  });
  return found;
}

std::multiset<std::string> named(const Json& trace, const std::string& what) {
  std::multiset<std::string> names;
  for (const auto& event : events(trace, "M")) {
    if (event["name"] == what) names.insert(event["args"]["name"].get<std::string>());
  }
  return names;
}

// Viewers drop what goes back in time or overlaps on a thread.
void expect_in_order(const Json& trace) {
  std::map<std::int64_t, double> ends, begins;
  for (const auto& event : events(trace, "X")) {
    const auto thread = event["tid"].get<std::int64_t>();
    const double begin = event["ts"].get<double>();
    ASSERT_GE(begin, begins[thread]);
    ASSERT_GE(begin, ends[thread] - 1e-6);
    begins[thread] = begin;
    ends[thread] = begin + event["dur"].get<double>();
  }
}

TEST(Trace, AProcessPerStrategyAndRankAThreadPerStream) {
  const Json trace = Json::parse(chrome_trace(traced_report({"momentum", "dgc"}, {0, 5}, 2)));
  EXPECT_EQ(trace["displayTimeUnit"], "ms");
  EXPECT_EQ(named(trace, "process_name"),
            (std::multiset<std::string>{"momentum / rank 0", "momentum / rank 5", "dgc / rank 0",
                                        "dgc / rank 5"}));
  EXPECT_EQ(named(trace, "thread_name"),
            (std::multiset<std::string>{"compute", "compute", "compute", "compute",
                                        "communication 1", "communication 1", "communication 1",
                                        "communication 1", "steps", "steps", "steps", "steps",
                                        "launches", "launches", "launches", "launches"}));
  std::set<std::int64_t> processes, threads;
  for (const auto& event : operations(trace)) {
    processes.insert(event["pid"].get<std::int64_t>());
    threads.insert(event["tid"].get<std::int64_t>());
  }
  EXPECT_EQ(processes.size(), 4U);
  EXPECT_EQ(threads.size(), 8U);
  EXPECT_EQ(operations(trace).size(), 2U * 2U * 2U * 7U);
  EXPECT_EQ(trace["otherData"]["left_out_events"], 0);
  expect_in_order(trace);
}

TEST(Trace, OpensOnTheLastStepOfTheBestStrategy) {
  measure::Report report = traced_report({"momentum", "dgc"}, {0}, 3);
  report.rows = {test::row("momentum", 1), test::row("dgc", 1.5)};
  const measure::Report one = step_of_best(report);
  ASSERT_EQ(one.traced.size(), 1U);
  EXPECT_EQ(one.traced[0].strategy, "dgc");
  const auto& whole = report.traced[1].timeline;
  const auto& last = one.traced[0].timeline;
  EXPECT_EQ(last.spans.size() * 3, whole.spans.size());
  EXPECT_EQ(last.period_ends, (std::vector<Seconds>{whole.period_ends[2] - whole.period_ends[1]}));
  const Json trace = Json::parse(chrome_trace(one));
  EXPECT_EQ(named(trace, "process_name"), (std::multiset<std::string>{"dgc / rank 0"}));
  EXPECT_EQ(operations(trace)[0]["ts"], 0);
  std::set<std::string> steps;
  for (const auto& event : events(trace, "X")) {
    if (event["cat"] == "user_annotation") steps.insert(event["name"]);
  }
  EXPECT_EQ(steps, (std::set<std::string>{"ProfilerStep#0"}));
  expect_in_order(trace);
}

TEST(Trace, EventsSayWhatTheyAre) {
  const Json trace = Json::parse(chrome_trace(traced_report({"dgc"}, {0}, 2, 12)));
  const auto all = operations(trace);
  EXPECT_EQ(all[0]["name"], "forward");
  EXPECT_EQ(all[0]["ts"], 0);
  EXPECT_EQ(all[0]["dur"], 1000);
  EXPECT_EQ(all[0]["args"]["kind"], "forward");
  EXPECT_EQ(all[0]["cat"], "forward");
  EXPECT_EQ(all[2]["name"], "encode bucket 0");
  EXPECT_EQ(all[2]["dur"], 0);
  EXPECT_EQ(all[2]["args"]["encoded_bytes"], 80);
  EXPECT_EQ(all[3]["name"], "nccl:all_gather bucket 0");
  EXPECT_EQ(all[3]["cat"], "exchange");
  EXPECT_EQ(
      all[3]["args"].dump(),
      R"({"kind":"all_gather","algorithm":"ring",)"
      R"("groups":"1 group of 16 ranks: 0, 1 .. 15","bytes":1280,"bucket":0,)"
      R"("bucket_bytes":48000,"codec":"dgc","encoded_bytes":80,)"
      R"("tensors":"layer0.weight, layer1.weight, layer2.weight, layer3.weight, )"
      R"(layer4.weight, layer5.weight, layer6.weight, layer7.weight and 4 more","step":0,"stream":2,"correlation":10000004})");
  EXPECT_EQ(all[5]["args"]["kind"], "host_sync");
  EXPECT_EQ(all[7]["args"]["step"], 1);
}

TEST(Trace, TimesAreRoundedWithoutOverlap) {
  measure::Report report = traced_report({"dgc"}, {0}, 1);
  auto& spans = report.traced[0].timeline.spans;
  spans.clear();
  double now = 0.0000004e-6;
  for (int i = 0; i < 2000; ++i) {
    const double end = now + 1.2345678901e-7 * (1 + i % 7);
    spans.push_back({i, 0, 0, now, end});
    now = end;
  }
  expect_in_order(Json::parse(chrome_trace(report)));
}

TEST(Trace, AtMostFourRanks) {
  std::vector<int> ranks;
  for (int rank = 0; rank < 64; ++rank) ranks.push_back(rank);
  const Json trace = Json::parse(chrome_trace(traced_report({"dgc"}, ranks, 1)));
  EXPECT_EQ(
      named(trace, "process_name"),
      (std::multiset<std::string>{"dgc / rank 0", "dgc / rank 1", "dgc / rank 2", "dgc / rank 3"}));
}

TEST(Trace, StaysSmallAndSaysWhatItLeftOut) {
  const std::string text = chrome_trace(traced_report({"momentum", "dgc"}, {0, 1}, 20000));
  EXPECT_LT(text.size(), kLimit);
  EXPECT_GT(text.size(), kLimit * 8 / 10);
  const Json trace = Json::parse(text);
  const auto notices = events(trace, "i");
  ASSERT_EQ(notices.size(), 2U);
  const auto shown = operations(trace).size();
  const auto left_out = trace["otherData"]["left_out_events"].get<std::size_t>();
  EXPECT_EQ(shown + left_out, 2U * 2U * 7U * 20000U);
  EXPECT_EQ(notices[0]["args"]["left_out_events"].get<std::size_t>() +
                notices[1]["args"]["left_out_events"].get<std::size_t>(),
            left_out);
  expect_in_order(trace);
  // Shared evenly between the two.
  std::map<bool, std::size_t> count;
  for (const auto& event : operations(trace)) ++count[event["pid"].get<int>() > 4];
  EXPECT_NEAR(static_cast<double>(count[false]), static_cast<double>(count[true]), 10);
}

TEST(Trace, AShortStrategyLeavesItsShareToTheOthers) {
  measure::Report report = traced_report({"long", "short"}, {0}, 30000);
  report.traced[1].timeline = test::even_timeline(report.traced[1].plan, {0}, 1);
  const std::string text = chrome_trace(report);
  EXPECT_GT(text.size(), kLimit * 8 / 10);
  const Json trace = Json::parse(text);
  EXPECT_EQ(events(trace, "i").size(), 1U);
  EXPECT_EQ(named(trace, "process_name").count("short / rank 0"), 1U);
}

TEST(Trace, ThousandsOfStrategiesWithLongNamesFitToo) {
  std::vector<std::string> names;
  for (int i = 0; i < 5000; ++i) names.push_back(std::string(3000, 'x') + std::to_string(i));
  const std::string text = chrome_trace(traced_report(names, {0, 1, 2, 3}, 1));
  EXPECT_LT(text.size(), kLimit);
  EXPECT_GT(Json::parse(text)["otherData"]["left_out_events"].get<int>(), 0);
}

TEST(Trace, HasABarForEachStep) {
  const Json trace = Json::parse(chrome_trace(traced_report({"dgc"}, {0, 5}, 3)));
  std::vector<std::pair<double, double>> bars;
  for (const auto& event : events(trace, "X")) {
    if (event["cat"] != "user_annotation" || event["pid"] != 1) continue;
    EXPECT_EQ(event["name"], "ProfilerStep#" + std::to_string(bars.size()));
    bars.emplace_back(event["ts"].get<double>(), event["dur"].get<double>());
  }
  // Six operations of a millisecond a step.
  EXPECT_EQ(bars, (std::vector<std::pair<double, double>>{{0, 6000}, {6000, 6000}, {12000, 6000}}));
}

TEST(Trace, CountsWhatIsInFlightAndExposed) {
  const Json trace = Json::parse(chrome_trace(traced_report({"dgc"}, {0}, 1)));
  std::vector<std::pair<double, int>> bytes, exposed;
  for (const auto& event : events(trace, "C")) {
    const bool flight = event["name"] == "bytes in flight";
    (flight ? bytes : exposed)
        .emplace_back(event["ts"].get<double>(),
                      event["args"][flight ? "bytes" : "exposed"].get<int>());
  }
  // The exchange is the third millisecond, and nothing is computed meanwhile.
  EXPECT_EQ(bytes, (std::vector<std::pair<double, int>>{{2000, 1280}, {3000, 0}}));
  EXPECT_EQ(exposed, (std::vector<std::pair<double, int>>{{2000, 1}, {3000, 0}}));
}

// A link's share stands once, whatever ranks are shown: half of the exchange's millisecond.
TEST(Trace, CountsHowFullLinksAre) {
  measure::Report report = traced_report({"dgc"}, {0, 5}, 2);
  report.traced[0].links = {{"leaf0-spine0", {0, 0, 0, 0.0005, 0, 0, 0}}};
  const Json trace = Json::parse(chrome_trace(report));
  std::vector<std::pair<double, double>> shares;
  for (const auto& event : events(trace, "C")) {
    if (event["name"] != "link leaf0-spine0") continue;
    shares.emplace_back(event["ts"].get<double>(), event["args"]["percent"].get<double>());
  }
  EXPECT_EQ(shares,
            (std::vector<std::pair<double, double>>{{2000, 50}, {3000, 0}, {8000, 50}, {9000, 0}}));
}

// Backward -> exchange -> update: each arrow begins inside the bar that was waited for and ends
// where the one that waited begins.
TEST(Trace, ArrowsLeadFromWhatWasWaitedForToWhatWaited) {
  measure::Report report = traced_report({"dgc"}, {0, 5}, 2);
  report.traced[0].plan.ops[3].after = {1};
  report.traced[0].plan.ops[6].after = {4, 5};  // 5 is on its own stream: the order says it
  const Json trace = Json::parse(chrome_trace(report));
  const auto starts = events(trace, "s"), ends = events(trace, "f");
  ASSERT_EQ(starts.size(), 2U * 2U * 2U);
  ASSERT_EQ(ends.size(), starts.size());
  std::set<std::int64_t> ids;
  const auto inside = [&](const Json& arrow, const std::string& name) {
    for (const auto& bar : operations(trace)) {
      const double begin = bar["ts"].get<double>(), end = begin + bar["dur"].get<double>();
      const double at = arrow["ts"].get<double>();
      if (bar["tid"] == arrow["tid"] && begin <= at && at < end)
        return bar["name"].get<std::string>().starts_with(name);
    }
    return false;
  };
  for (std::size_t i = 0; i < starts.size(); ++i) {
    EXPECT_TRUE(ids.insert(starts[i]["id"].get<std::int64_t>()).second);
    EXPECT_EQ(starts[i]["id"], ends[i]["id"]);
    EXPECT_EQ(starts[i]["pid"], ends[i]["pid"]);
    const bool sends = inside(starts[i], "backward");
    EXPECT_TRUE(sends || inside(starts[i], "decode bucket 0"));
    EXPECT_TRUE(inside(ends[i], sends ? "nccl:all_gather bucket 0" : "update"));
  }
}

TEST(Trace, AnEmptyPlanIsStillATrace) {
  const Json trace = Json::parse(chrome_trace(test::report_of({})));
  EXPECT_EQ(trace["traceEvents"].size(), 0U);
}

TEST(Gantt, ShowsTheLastStepOfEachStream) {
  const auto figure = gantt(traced_report({"one", "two"}, {0}, 3), {0, 1}).figure;
  EXPECT_EQ(figure.up.names, (std::vector<std::string>{"one: compute", "one: communication 1",
                                                       "two: compute", "two: communication 1"}));
  // Of the seven operations of a period one takes no time; the exchange is exposed.
  EXPECT_EQ(figure.boxes.size(), 2U * (6 + 1));
  for (const auto& box : figure.boxes) {
    EXPECT_GE(box.from, 0);
    EXPECT_LE(box.to, 0.006 + 1e-12);
  }
  EXPECT_TRUE(figure.boxes[0].name.starts_with("forward, 1.000 ms"));
  EXPECT_DOUBLE_EQ(figure.boxes[0].from, 0);
}

TEST(Gantt, MarksWhatNothingHides) {
  const auto figure = gantt(traced_report({"one"}, {0}, 3), {0}).figure;
  const auto exposed = std::find_if(figure.boxes.begin(), figure.boxes.end(), [](const auto& box) {
    return box.colour == chart::kVermilion;
  });
  ASSERT_NE(exposed, figure.boxes.end());
  EXPECT_EQ(exposed->lane, 0);
  EXPECT_NEAR(exposed->from, 0.002, 1e-12);
  EXPECT_NEAR(exposed->to, 0.003, 1e-12);
}

TEST(Gantt, ABucketLeadsToItsTensors) {
  const auto picture = gantt(traced_report({"one", "two"}, {0}, 3), {0, 1});
  ASSERT_EQ(picture.ids.size(), 2U);
  EXPECT_EQ(picture.details.lines[0].cells[4], "layer0.weight, layer1.weight, layer2.weight");
  for (const auto& box : picture.figure.boxes) {
    if (box.link.empty()) continue;
    EXPECT_NE(std::find(picture.ids.begin(), picture.ids.end(), box.link), picture.ids.end());
  }
}

TEST(Gantt, SaysWhichStreamsItLeftOut) {
  std::vector<int> ranks;
  for (int rank = 0; rank < 20; ++rank) ranks.push_back(rank);
  const auto figure = gantt(traced_report({"one"}, ranks, 2), {0}).figure;
  EXPECT_EQ(figure.up.names.size(), kGanttLanes);
  EXPECT_TRUE(test::says(figure.note, "28 streams of further ranks left out"));
}

// However many operations there are: few bars, which cover what the operations covered.
TEST(Gantt, JoinsShortNeighbours) {
  test::Dice dice(3);
  measure::Report report = traced_report({"one"}, {0}, 1);
  auto& timeline = report.traced[0].timeline;
  timeline.spans.clear();
  double now = 0, busy = 0;
  for (int i = 0; i < 20000; ++i) {
    const double length = dice.between(1, 1000) * 1e-6;
    timeline.spans.push_back({0, i % 2, 0, now, now + length});
    busy += length;
    now += length;
  }
  timeline.period_ends = {now};
  const auto figure = gantt(report, {0}).figure;
  EXPECT_LE(figure.boxes.size(), kGanttBars);
  double drawn = 0;
  for (const auto& box : figure.boxes) drawn += box.to - box.from;
  EXPECT_NEAR(drawn, busy, 1e-6 * busy);
}

TEST(Gantt, IsEmptyWithoutRows) {
  EXPECT_TRUE(gantt(traced_report({"one"}, {0}, 0), {0}).figure.boxes.empty());
}

// Names of operations (core/plan/plan.cc), as the trace shows them.

TEST(Describe, EveryKindOfWork) {
  const Workload workload = test::named_workload(3);
  const plan::Plan plan = test::small_plan(3);
  const auto text = [&](plan::Work work) {
    return plan::describe(test::op(0, std::move(work)), plan, workload);
  };
  EXPECT_EQ(text(plan::Compute{plan::Phase::kForward, 1, 0, -1}), "forward");
  EXPECT_EQ(text(plan::Compute{plan::Phase::kBackward, 1, 0, 0}), "backward layer0.weight");
  EXPECT_EQ(text(plan::Compute{plan::Phase::kBackward, 1, 0, 2}),
            "backward layer0.weight .. layer2.weight");
  EXPECT_EQ(text(plan::Compute{plan::Phase::kUpdate, 1, 0, 2}), "update");
  EXPECT_EQ(text(plan::Compute{plan::Phase::kUpdate, 1, 1, 2}),
            "update layer1.weight .. layer2.weight");
  EXPECT_EQ(text(plan::Compute{plan::Phase::kAverage, 1, 0, 2}), "average");
  EXPECT_EQ(
      text(collective::Collective{collective::CollectiveKind::kAllReduce, nullptr, {}, 1, 4, 3}),
      "all_reduce bucket 3");
  EXPECT_EQ(text(plan::Busy{plan::Busy::Reason::kEncode, 0, 2}), "encode bucket 2");
  EXPECT_EQ(text(plan::Busy{plan::Busy::Reason::kDecode, 0, 2}), "decode bucket 2");
  EXPECT_EQ(text(plan::Busy{plan::Busy::Reason::kHost, 1}), "host sync");
}

TEST(Describe, BuffersFollowTheTensors) {
  const Workload workload = test::named_workload(3);
  EXPECT_EQ(plan::tensor_name(workload, 2), "layer2.weight");
  EXPECT_EQ(plan::tensor_name(workload, 3), "bn.running_mean");
}

}  // namespace
}  // namespace syncline::reports
