// Traces that are damaged, hostile, of other jobs or told in part: a result with a warning, or a
// refusal in one line that names the file.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/support/jobs.h"
#include "tests/support/kineto_trace.h"
#include "tests/support/packed.h"

namespace syncline::job::kineto {
namespace {

using test::contains;

class KinetoRobust : public test::JobFiles {
 protected:
  Observed read(const std::string& text) { return read_job({written(text)}); }
  std::string packed(const std::string& text) {
    test::write_packed(scratch_.path("packed"), text);
    return test::text_of(scratch_.path("packed"));
  }
};

// A generated trace has an event a line.
std::string without(const std::string& text, const std::function<bool(const std::string&)>& leave) {
  std::string kept;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("{\"ph\"") || !leave(line)) kept += line + "\n";
  }
  const std::size_t last = kept.rfind("},\n]");
  if (last != std::string::npos) kept.erase(last + 1, 1);
  return kept;
}

// Whether a line has one of these.
auto with_any(std::initializer_list<const char*> parts) {
  return [parts = std::vector<std::string>(parts.begin(), parts.end())](const std::string& line) {
    return std::ranges::any_of(parts, [&](const auto& part) { return contains(line, part); });
  };
}

std::string trace(const test::TraceDialect& dialect = {}, int steps = 3, std::uint64_t seed = 7) {
  return test::TraceWriter(dialect, seed).file(steps);
}

void expect_equal(const Observed& a, const Observed& b) {
  ASSERT_EQ(a.ranks.size(), b.ranks.size());
  for (std::size_t r = 0; r < a.ranks.size(); ++r) {
    ASSERT_EQ(a.ranks[r].steps.size(), b.ranks[r].steps.size());
    for (std::size_t s = 0; s < a.ranks[r].steps.size(); ++s) {
      const Step& x = a.ranks[r].steps[s];
      const Step& y = b.ranks[r].steps[s];
      EXPECT_EQ(std::tie(x.gpu, x.forward, x.exposed), std::tie(y.gpu, y.forward, y.exposed));
      EXPECT_EQ(x.gradients.size(), y.gradients.size());
      EXPECT_EQ(x.exchanges.size(), y.exchanges.size());
    }
  }
}

TEST_F(KinetoRobust, GzipIsReadWhole) {
  const std::string text = trace();
  const Observed plain = read(text);
  expect_equal(read(packed(text)), plain);
  const std::size_t middle = text.size() / 3;
  expect_equal(read(packed(text.substr(0, middle)) + packed(text.substr(middle))), plain);
}

TEST_F(KinetoRobust, ACutFileIsRefusedWhereverItIsCut) {
  const std::string text = trace({}, 1, 3);
  const std::string gzip = packed(text);
  for (std::size_t size = 1; size + 1 < text.size(); size += text.size() / 150 + 1) {
    EXPECT_NE(refusal(text.substr(0, size)), "") << size;
  }
  for (std::size_t size = 3; size < gzip.size(); size += gzip.size() / 50 + 1) {
    EXPECT_NE(refusal(gzip.substr(0, size)), "") << size;
  }
  EXPECT_EQ(refusal(gzip.substr(0, gzip.size() - 30)), "gzip: cut off");
}

TEST_F(KinetoRobust, DamagedBytesNeverDoMoreThanARefusal) {
  const std::string text = trace({.shapes = true}, 1, 11);
  test::Dice dice(5);
  std::size_t results = 0;
  for (int i = 0; i < 400; ++i) {
    const std::string damaged = test::damaged(
        text, dice, 4,
        {'"', '\\', '{', '}', '[', ']', ',', ':', '9', '-', 'e', '\0', '\xff', ' ', '.'});
    try {
      const Observed observed = read(damaged);
      ++results;
      for (const Step& step : observed.ranks.at(0).steps) {
        EXPECT_EQ(step.stages, 0);
        EXPECT_NEAR(test::sum_of(step), step.gpu, 1e-9 + 1e-9 * step.gpu);
      }
    } catch (const InputError&) {
    }
  }
  EXPECT_GT(results, 40u);
}

TEST_F(KinetoRobust, EventsThatAreNoWorkChangeNothing) {
  const std::string text = trace();
  const Observed clean = read(text);
  const std::string foreign = R"json(
{"ph": "X", "cat": "kernel", "name": "unlasting", "pid": 0, "tid": 7, "ts": 1, "args": {"stream": 7}},
{"ph": "B", "cat": "cpu_op", "name": "begun", "pid": 1, "tid": 7, "ts": 5},
{"ph": "E", "pid": 1, "tid": 7, "ts": 5},
{"ph": "?", "name": 17},
{"name": "nothing else"},
{},
null,
17,
"word",
[{"ph": "X"}],
{"ph": "X", "cat": "Trace", "ts": 1, "dur": 999999999999, "pid": "Spans", "tid": "PyTorch Profiler",
 "name": "PyTorch Profiler (0)", "args": {"Op count": 0}},
{"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#1", "pid": 0, "tid": 7, "ts": 1,
 "dur": 99},
{"ph": "X", "cat": "overhead", "name": "Activity Buffer Request", "pid": -1, "tid": 0, "ts": 1,
 "dur": 7, "args": null},
)json";
  const std::size_t events = text.find("\"traceEvents\": [") + 16;
  const Observed noisy = read(text.substr(0, events) + foreign + text.substr(events));
  expect_equal(noisy, clean);
  EXPECT_EQ(noisy.warnings, clean.warnings);
}

TEST_F(KinetoRobust, NoNumbersInArgumentsThatAreNotNeededAreNoDamage) {
  const std::string text = trace();
  const std::string odd = test::replaced(text, "\"device\": 0",
                                         "\"device\": 0, \"est. achieved occupancy %\": nan, "
                                         "\"memory bandwidth (GB/s)\": inf, \"queued\": "
                                         "99999999999999999999999999");
  expect_equal(read(odd), read(text));
}

TEST_F(KinetoRobust, EventsThatCannotBeReadAreCounted) {
  std::string text = trace();
  const std::size_t at = text.find("\"cat\": \"kernel\", \"name\": \"void gemm");
  text.replace(text.find("\"ts\": ", at) + 6, 3, "abc");
  EXPECT_TRUE(test::warns(read(text), "1 events that cannot be read are left out"));
}

TEST_F(KinetoRobust, NegativeDurationsAreNone) {
  std::string odd = trace();
  odd.insert(odd.find("\"dur\": ", odd.find("\"name\": \"void gemm")) + 7, "-");
  const Observed observed = read(odd);
  for (const Step& step : observed.ranks[0].steps) {
    EXPECT_EQ(step.stages, 0);
    EXPECT_NEAR(test::sum_of(step), step.gpu, 1e-9);
    for (const Gradient& gradient : step.gradients) EXPECT_GE(gradient.wait, 0);
  }
}

// Gloo under a model on GPUs: its annotations last from the call to the completion. NCCL's calls
// tell no times.
TEST_F(KinetoRobust, CallsAreEnoughToFindCollectives) {
  const auto kernels = [](const std::string& line) {
    return contains(line, "\"kernel\"") && contains(line, "nccl");
  };
  for (const bool gloo : {false, true}) {
    test::TraceWriter writer({.shapes = true}, 4);
    const std::string text = without(writer.file(2), kernels);
    const Observed observed = read(gloo ? test::replaced(text, "nccl", "gloo") : text);
    EXPECT_EQ(observed.backend, gloo ? "gloo" : "nccl");
    const Step& step = observed.ranks[0].steps[0];
    if (gloo) {
      EXPECT_FALSE(test::warns(observed, "no kernels of collectives"));
    } else {
      EXPECT_TRUE(
          test::warns(observed, "no kernels of collectives in the trace, only the host's calls"));
      EXPECT_EQ(step.exposed, 0);
    }
    const std::vector<ObservedExchange>& truth = writer.truth()[0].exchanges;
    ASSERT_EQ(step.exchanges.size(), truth.size());
    for (std::size_t i = 0; i < truth.size(); ++i) {
      EXPECT_EQ(step.exchanges[i].elements, truth[i].elements);
      EXPECT_EQ(step.exchanges[i].gradients, truth[i].gradients);
      EXPECT_GE(step.exchanges[i].duration, 0);
      EXPECT_EQ(step.exchanges[i].duration > 0, gloo);
    }
  }
}

TEST_F(KinetoRobust, OneGpuHasGradientsAndNoBuckets) {
  const auto collective = with_any({"nccl", "c10d", "record_param", "reducer", "mul<float>",
                                    "Memcpy", "DistributedDataParallel"});
  test::TraceWriter writer({.shapes = true, .views = true}, 9);
  const std::string text = without(writer.file(2, 0, 1), collective);
  const Observed observed = read(test::replaced(text, "\"distributedInfo\"", "\"otherInfo\""));
  EXPECT_EQ(observed.world_size, 1);
  EXPECT_FALSE(observed.bucket_views);
  EXPECT_TRUE(test::warns(observed, "no collective of gradients in the trace"));
  const Step& step = observed.ranks[0].steps[1];
  EXPECT_TRUE(step.exchanges.empty());
  ASSERT_EQ(step.gradients.size(), writer.truth()[1].gradients.size());
  for (std::size_t i = 0; i < step.gradients.size(); ++i) {
    EXPECT_EQ(step.gradients[i].elements, writer.truth()[1].gradients[i].elements);
    EXPECT_NEAR(step.gradients[i].wait, writer.truth()[1].gradients[i].wait, 1e-9);
  }
}

TEST_F(KinetoRobust, MissingSizesAreAskedFor) {
  expect_refusal(trace({.views = true}), "record with torch.profiler.profile(record_shapes=True)");
  expect_refusal(test::replaced(trace(), "\"bytes\": ", "\"length\": "),
                 "the copies out of the buckets do not tell them all");
}

// A collective that the host sends late is waited for from when it runs; before, for the host.
TEST_F(KinetoRobust, WhileNothingRunsTheHostIsWaitedFor) {
  test::TraceWriter writer({.shapes = true, .views = true, .late_sends = true}, 5);
  const Observed observed = read(writer.file(3));
  EXPECT_TRUE(test::warns(observed, "launch-bound")) << observed.warnings.front();
  for (std::size_t s = 0; s < 3; ++s) {
    const Step& step = observed.ranks[0].steps[s];
    EXPECT_NEAR(step.idle, writer.truth()[s].idle, 1e-9);
    EXPECT_GT(step.host_gap, 0);
    Seconds took = 0;
    for (const ObservedExchange& exchange : step.exchanges) {
      EXPECT_LE(exchange.exposed, exchange.duration + 1e-9);
      took += exchange.duration;
    }
    EXPECT_LE(step.exposed, took + 1e-9);
  }
  EXPECT_FALSE(test::warns(read(trace({.shapes = true}, 3, 8)), "launch-bound"));
}

// A trace that lacks shapes gives no scenario, but the times of its steps and collectives.
TEST_F(KinetoRobust, MissingShapesLeaveTheTimes) {
  test::TraceWriter writer({.views = true}, 7);
  const std::string said = refusal(writer.file(3));
  std::size_t count = 0;
  Seconds took = 0;
  for (const Step& step : writer.truth()) {
    for (const ObservedExchange& exchange : step.exchanges) {
      ++count;
      took += exchange.duration;
    }
  }
  char total[64];
  std::snprintf(total, sizeof total, "%zu all_reduce", count);
  EXPECT_TRUE(contains(said, "a step takes ")) << said;
  EXPECT_TRUE(contains(said, total)) << said;
  std::snprintf(total, sizeof total, "(%.1f ms, ", took / kMillisecond);
  EXPECT_TRUE(contains(said, total)) << said;
  EXPECT_TRUE(contains(said, " ms exposed)")) << said;
}

TEST_F(KinetoRobust, ExpertsAndPipelinesAreRefusedByName) {
  const auto of_ddp = with_any({"c10d", "record_param", "nccl:", "DistributedDataParallel"});
  const std::string text = without(trace({.nccl_metadata = false, .views = true}), of_ddp);
  const std::string kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)";
  const std::string experts =
      refusal(test::replaced(text, kernel, "void deep_ep::internode::dispatch<false, 4>(int4*)"));
  EXPECT_TRUE(experts.starts_with("no data-parallel training (DeepEP): the trace has ")) << experts;
  EXPECT_TRUE(contains(experts, " deep_ep of unknown size (")) << experts;
  const std::string stages = refusal(
      test::replaced(text, kernel, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"));
  EXPECT_TRUE(stages.starts_with("no data-parallel training: ")) << stages;
  EXPECT_TRUE(contains(stages, " send_recv of ")) << stages;
  EXPECT_TRUE(contains(stages, "pipeline stages")) << stages;
}

TEST_F(KinetoRobust, ShardedGradientsAreRefusedWithTheKnownFacts) {
  std::string text =
      test::replaced(trace({.shapes = true}), "\"allreduce\"", "\"reduce_scatter_base\"");
  text = test::replaced(text, "nccl:all_reduce", "nccl:_reduce_scatter_base");
  text = test::replaced(text, "AllReduce", "ReduceScatter");
  text = test::replaced(text, "c10d::allreduce_", "c10d::_reduce_scatter_base_");
  expect_refusal(text, "gradients are reduced to shards");
  expect_refusal(text, "reduce_scatter of ");
  const std::string fsdp = test::replaced(text, "DistributedDataParallel.forward",
                                          "FullyShardedDataParallel._pre_forward");
  // What goes in comes out, which no group of two ranks does.
  expect_refusal(fsdp, "is given as 2 ranks, and its reduce_scatter takes in");
  const std::string bare = test::replaced(test::replaced(fsdp, "Process Group Name", "nothing"),
                                          "Group size", "nothing either");
  expect_refusal(bare, "name no groups of ranks, and what they take in and give does not tell one");
}

// HSDP all-reduces shards: of other sizes than any run of gradients.
TEST_F(KinetoRobust, AllReducesOfShardsAreNoBuckets) {
  std::string text = test::replaced(trace({.shapes = true}), "DistributedDataParallel.forward",
                                    "FSDP::pre_forward");
  EXPECT_EQ(refusal(text), "");
  text = test::replaced(text, "msg nelems\": ", "msg nelems\": 7");
  EXPECT_TRUE(refusal(text).starts_with("FSDP: "));
}

TEST_F(KinetoRobust, OtherProfilesAreRefusedByName) {
  const auto device = with_any({"\"kernel\"", "gpu_memcpy"});
  expect_refusal(without(trace(), device), "no work of a GPU in it");
  expect_refusal(test::replaced(without(trace(), device), "nccl", "gloo"),
                 "`syncline record` measures such a job");
  const auto arrival = with_any({"AccumulateGrad"});
  expect_refusal(without(trace(), arrival), "AccumulateGrad was not recorded");
  const std::string scattered = test::replaced(trace(), "\"allreduce\"", "\"reduce_scatter\"");
  expect_refusal(without(scattered, arrival), "AccumulateGrad was not recorded");
  expect_refusal(without(trace(), with_any({"cuda_runtime"})),
                 "without the call that launched them");
  const std::string text = trace();
  const std::size_t list = text.find("[", text.find("\"traceEvents\""));
  expect_refusal(text.substr(list, text.rfind(']') + 1 - list), "a bare list of events");
  expect_refusal(test::replaced(text, "\"tid\": 1001", "\"tid\": \"1001(Python)\""), "Paddle");
}

TEST_F(KinetoRobust, OtherAcceleratorsAreRefusedByTheirNames) {
  const std::string mtia = test::replaced(trace(), "\"kernel\"", "\"mtia_ccp_events\"");
  expect_refusal(without(mtia, with_any({"gpu_memcpy"})), "a job on MTIA (");
  const std::string gaudi = test::replaced(trace(), "\"kernel\"", "\"hpu_op\"");
  expect_refusal(without(gaudi, with_any({"gpu_memcpy"})), "a job on HPU (Gaudi) (");
}

// A GPU that lags ends collectives of the step before; nothing in the trace launched them.
TEST_F(KinetoRobust, CollectivesFromBeforeTheProfileAreLeftOut) {
  for (const bool metadata : {false, true}) {
    const std::string text = trace({.shapes = true, .nccl_metadata = metadata});
    const std::size_t events = text.find("\"traceEvents\": [") + 16;
    std::string more;
    for (int i = 0; i < 3; ++i) {
      more += R"x({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_SendRecv(ncclComm*)", )x"
              R"("pid": 0, "tid": 99, "ts": )" +
              std::to_string(1 + 100 * i) + R"(, "dur": 90, "args": {"correlation": )" +
              std::to_string(900000000 + i) + R"(, "stream": 99, "device": 0}},)";
    }
    std::string early = text;
    early.insert(events, more);
    const Observed plain = read(text), observed = read(early);
    expect_equal(plain, observed);
    EXPECT_TRUE(test::warns(observed, "3 collectives that were launched before the profile began"));
  }
}

TEST_F(KinetoRobust, AHookThatSendsAnotherFormatIsSeen) {
  const Observed observed =
      read(test::replaced(trace({.shapes = true, .views = true}), "Float", "Half"));
  EXPECT_TRUE(observed.comm_hook);
  const Step& step = observed.ranks[0].steps[0];
  EXPECT_EQ(step.exchanges.at(0).dtype, DType::kFp16);
  EXPECT_EQ(step.gradients.at(0).dtype, DType::kFp32);
  EXPECT_FALSE(step.exchanges.at(0).gradients.empty());
}

TEST_F(KinetoRobust, AStepThatTheTraceCutsIsLeftOut) {
  const std::string text = trace({.shapes = true, .views = true});
  std::size_t first = 0;
  const Observed observed = read(without(text, [&](const std::string& line) {
    return contains(line, "AccumulateGrad") && first++ < 2;
  }));
  ASSERT_EQ(observed.ranks[0].steps.size(), 2u);
  EXPECT_EQ(observed.ranks[0].steps[0].number, 1);
  EXPECT_TRUE(test::warns(observed, "are left out: 0"));
}

// A profile that begins between two passes of one exchange.
TEST_F(KinetoRobust, AStepWithFewerPassesIsLeftOut) {
  const std::string text = trace({.passes = 3, .step_a_pass = true});
  EXPECT_TRUE(contains(text, "ProfilerStep#0"));
  const Observed observed = read(without(text, with_any({"ProfilerStep#0\""})));
  ASSERT_EQ(observed.ranks[0].steps.size(), 2u);
  EXPECT_EQ(observed.ranks[0].steps[0].number, 5);
  EXPECT_EQ(observed.accumulation_steps, 3);
  EXPECT_TRUE(test::warns(observed, "are left out: 2"));
}

TEST_F(KinetoRobust, TheGpuWithMostKernelsIsRead) {
  const std::string text = trace();
  const std::string other =
      R"({"ph": "X", "cat": "kernel", "name": "other", "pid": 1, "tid": 7, "ts": 1700000000000100, "dur": 5, "args": {"device": 1, "stream": 7, "correlation": 1}},
)";
  const std::size_t events = text.find("\"traceEvents\": [") + 16;
  const Observed observed = read(text.substr(0, events) + "\n" + other + text.substr(events));
  expect_equal(observed, read(text));
  EXPECT_TRUE(test::warns(observed, "kernels of 2 GPUs in one trace; GPU 0"));
}

TEST_F(KinetoRobust, ParametersWithoutAGradientLeaveTheirBucketTheOthers) {
  test::TraceWriter writer({.shapes = true}, 7);
  const std::string text = writer.file(1);
  const std::int64_t elements = writer.truth()[0].exchanges[0].elements;
  const std::string from = "msg nelems\": " + std::to_string(elements) + ",";
  const std::string to = "msg nelems\": " + std::to_string(elements + 1) + ",";
  const Observed observed = read(test::replaced(text, from, to));
  const ObservedExchange& exchange = observed.ranks[0].steps[0].exchanges[0];
  EXPECT_EQ(exchange.elements, elements + 1);
  EXPECT_EQ(exchange.gradients, writer.truth()[0].exchanges[0].gradients);
}

TEST_F(KinetoRobust, CollectivesOfSeveralRanksTakeTheLeastOfTheirTimes) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    std::vector<std::string> files;
    std::vector<std::vector<Step>> truth;
    for (const int rank : {2, 0, 1}) {
      test::TraceWriter writer({.shapes = true}, seed);
      files.push_back(written(writer.file(2, rank, 3), rank));
      truth.push_back(writer.truth());
    }
    const Observed observed = read_job(files);
    EXPECT_EQ(observed.world_size, 3);
    ASSERT_EQ(observed.ranks.size(), 3u);
    for (std::size_t s = 0; s < 2; ++s) {
      for (std::size_t i = 0; i < truth[0][s].exchanges.size(); ++i) {
        double least = 1;
        for (const auto& steps : truth) least = std::min(least, steps[s].exchanges[i].duration);
        for (const Rank& rank : observed.ranks) {
          EXPECT_NEAR(rank.steps[s].exchanges[i].time, least, 1e-9);
        }
      }
    }
    EXPECT_EQ(observed.skew.size(), truth[0][0].exchanges.size());
    EXPECT_FALSE(test::warns(observed, "upper bound"));
  }
}

TEST_F(KinetoRobust, RanksThatDisagreeAreNotMatched) {
  test::TraceWriter first({.shapes = true}, 7);
  test::TraceWriter second({.shapes = true}, 7);
  const std::string a = written(first.file(1, 0), 0);
  const std::string b =
      written(test::replaced(second.file(1, 1), "msg nelems\": ", "msg nelems\": 1"), 1);
  const Observed observed = read_job({a, b});
  EXPECT_TRUE(test::warns(observed, "the ranks disagree"));
  const ObservedExchange& exchange = observed.ranks[0].steps[0].exchanges[0];
  EXPECT_EQ(exchange.time, exchange.duration);
}

// Cost must not grow with the square of what a file holds.
TEST_F(KinetoRobust, ManyOfEverythingIsReadInTime) {
  using test::trace_event;
  std::string events;
  for (int i = 0; i < 60'000; ++i) {
    const std::int64_t at = 1000 * (1000 + i);
    const std::string id = "\"correlation\": " + std::to_string(i % 7);
    events +=
        trace_event("cpu_op", "torch::autograd::AccumulateGrad", 1, std::to_string(i % 5000), at,
                    at + 90'000'000, R"("Input Dims": [[3]], "Input type": ["float"])") +
        ",\n" +
        trace_event("cpu_op", "nccl:all_reduce", 1, "3", at, at + 1000, R"("Input Dims": [[7]])") +
        ",\n" + trace_event("cuda_runtime", "c", 1, "3", at, at + 1000, id) + ",\n" +
        trace_event("kernel", "k", 0, "3", at, at + 1000, "\"stream\": 7, " + id) + ",\n";
  }
  const Observed observed = read("{\"traceEvents\": [" + events + "{}]}");
  EXPECT_EQ(observed.ranks[0].steps[0].gradients.size(), 60'000u);
}

}  // namespace
}  // namespace syncline::job::kineto
