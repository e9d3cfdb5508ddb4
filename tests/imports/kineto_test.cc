// What comes out of real traces, against figures that were taken from them by hand.
#include <gtest/gtest.h>

#include <numeric>

#include "imports/kineto/trace.h"
#include "imports/scenario_of.h"
#include "tests/support/jobs.h"
#include "tests/support/kineto_trace.h"
#include "tests/support/scratch.h"
#include "tests/support/text.h"

namespace syncline::job::kineto {
namespace {

using test::contains;
using test::dlrm_files;
using test::kResNet50;
using test::refusal_of_files;

// In whichever order.
std::vector<std::string> dlrm() { return dlrm_files({5, 3, 0, 7, 1, 6, 2, 4}); }

std::vector<ObservedExchange> all_reduces(const Step& step) {
  std::vector<ObservedExchange> found;
  for (const ObservedExchange& exchange : step.exchanges) {
    if (exchange.kind == "all_reduce") found.push_back(exchange);
  }
  return found;
}

constexpr double kMs = 1e-3;

TEST(Kineto, ResNet50OnTwoA100) {
  const Observed job = read_job({kResNet50});
  EXPECT_EQ(
      (std::vector{job.format, job.framework, job.backend, job.nccl_version, job.device, job.name}),
      (std::vector<std::string>{"kineto", "pytorch", "nccl", "2.17.1", "NVIDIA A100-PG509-200",
                                "resnet50_ddp_2xA100_rank0"}));
  EXPECT_EQ(
      (std::vector{job.world_size, job.devices_a_node, job.ddp_modules, job.accumulation_steps}),
      (std::vector{2, 8, 1, 1}));
  EXPECT_FALSE(job.bucket_views);
  EXPECT_FALSE(job.comm_hook);
  ASSERT_EQ(job.ranks.size(), 1u);
  const std::vector<Step>& steps = job.ranks[0].steps;
  ASSERT_EQ(steps.size(), 3u);
  const double cpu[] = {222.4, 219.7, 224.9};
  const double gpu[] = {222.05, 219.73, 224.96};  // to the next one's first kernel
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(steps[i].number, static_cast<int>(4 + i));
    EXPECT_NEAR(steps[i].cpu, cpu[i] * kMs, 0.05 * kMs);
    EXPECT_NEAR(steps[i].gpu, gpu[i] * kMs, 0.05 * kMs);
    EXPECT_EQ(steps[i].stages, 0);
    EXPECT_NEAR(test::sum_of(steps[i]), steps[i].gpu, 1e-9);
  }
}

TEST(Kineto, AStepOfResNet50AddsUp) {
  const Observed job = read_job({kResNet50});
  const Step& step = job.ranks[0].steps[1];
  for (const auto& [part, milliseconds] : {std::pair{step.broadcast + step.forward, 99.5},
                                           {step.backward, 82.7},
                                           {step.copy_out, 16.7},
                                           {step.host_gap, 5.2},
                                           {step.update, 9.4}}) {
    EXPECT_NEAR(part, milliseconds * kMs, 0.05 * kMs);
  }
  EXPECT_EQ(step.exposed, 0);  // the last all-reduce lies under the copies
  // The device copies for a millisecond of the 36 that copies take.
  EXPECT_NEAR(step.copy_kernels, 0.972 * kMs, 0.001 * kMs);
  double waits = 0;
  double copies_in = 0;
  double copies_out = 0;
  for (const Gradient& gradient : step.gradients) {
    waits += gradient.wait;
    copies_in += gradient.copy_in;
    copies_out += gradient.copy_out;
  }
  EXPECT_NEAR(waits + copies_in, step.backward, 1e-9);
  EXPECT_NEAR(copies_in, step.copy_in, 1e-9);
  EXPECT_NEAR(copies_out, step.copy_out, 1e-9);
}

// DDP joins the buffers, floats and then integers, broadcasts both and copies all 159 back: a third
// of the 100 ms until the backward pass, nearly all of it the host's.
TEST(Kineto, ResNet50sBuffersAreBroadcastBeforeItsForwardPass) {
  const Observed job = read_job({kResNet50});
  for (const Step& step : job.ranks[0].steps) {
    EXPECT_NEAR(step.broadcast, 33.6 * kMs, 0.2 * kMs);
    EXPECT_EQ(step.exchanges[0].kind, "broadcast");
    EXPECT_LT(step.exchanges[1].sent + step.exchanges[1].duration, step.broadcast);
  }
}

// Joined in 3 and 2 us, broadcast from 8 to 28 and from 30 to 38, copied back until 48: what is
// behind that is the forward pass, up to 545 us.
TEST(Kineto, BuffersOfBatchNorm) {
  const Observed job = read_job({test::kineto_sample("batch_norm_2ranks_rank0.json")});
  ASSERT_EQ(job.ranks[0].steps.size(), 3u);
  for (const Step& step : job.ranks[0].steps) {
    EXPECT_NEAR(step.broadcast, 48e-6, 1e-9);
    EXPECT_NEAR(step.forward, 497e-6, 1e-9);
    EXPECT_NEAR(step.exposed, 150e-6, 1e-9);
    EXPECT_NEAR(step.host_gap, 4e-6, 1e-9);  // until the all-reduce runs
    EXPECT_EQ(step.stages, 0);
    EXPECT_NEAR(test::sum_of(step), step.gpu, 1e-9);
    ASSERT_EQ(step.exchanges.size(), 3u);
    EXPECT_EQ(step.exchanges[1].elements, 1);
    EXPECT_NEAR(step.exchanges[0].exposed + step.exchanges[1].exposed, 28e-6, 1e-9);
    EXPECT_EQ(step.exchanges[2].gradients.size(), 5u);
  }
  const Imported imported = scenario_of(job, {});
  const Json& workload = imported.scenario["workload"];
  EXPECT_EQ(workload["buffer_broadcast_ms"], 0.048);
  EXPECT_EQ(workload["forward_ms"], 0.497);
  EXPECT_FALSE(workload.contains("batch"));
}

TEST(Kineto, ResNet50sBucketsAreReported) {
  const Observed job = read_job({kResNet50});
  for (const Step& step : job.ranks[0].steps) {
    ASSERT_EQ(step.gradients.size(), 161u);
    EXPECT_EQ(gradient_bytes(step), 102228128);
    const std::vector<ObservedExchange> sent = all_reduces(step);
    ASSERT_EQ(sent.size(), 5u);
    const std::int64_t elements[] = {2049000, 7875584, 6563840, 6637568, 2431040};
    std::size_t next = 0;
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(sent[i].elements, elements[i]);
      EXPECT_EQ(sent[i].dtype, DType::kFp32);
      EXPECT_EQ(sent[i].ranks, 2);
      EXPECT_EQ(sent[i].group, "0");
      EXPECT_LE(sent[i].complete, sent[i].sent);
      EXPECT_EQ(sent[i].time, sent[i].duration);
      std::int64_t sum = 0;
      for (const int gradient : sent[i].gradients) {
        EXPECT_EQ(gradient, static_cast<int>(next++));
        sum += step.gradients[static_cast<std::size_t>(gradient)].elements;
      }
      EXPECT_EQ(sum, elements[i]);
    }
    EXPECT_EQ(next, 161u);
  }
  const double durations[] = {2.5, 2.7, 2.6, 2.4, 2.0};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(all_reduces(job.ranks[0].steps[1])[i].duration, durations[i] * kMs, 0.05 * kMs);
  }
}

TEST(Kineto, ResNet50sWarningsSayWhatIsNoBasis) {
  const Observed job = read_job({kResNet50});
  EXPECT_TRUE(job.warnings.front().starts_with("one rank alone (1 of 2)"));
  for (const char* part : {"do not follow their size", "the device copies for 0.9 ms of 36.9 ms",
                           "the host is slower than the device, which waits for it for"}) {
    EXPECT_TRUE(test::warns(job, part)) << part;
  }
}

TEST(Kineto, DlrmOnEightV100) {
  const Observed job = read_job(dlrm());
  EXPECT_EQ(job.world_size, 8);
  EXPECT_EQ(job.device, "Tesla V100-SXM2-32GB");
  EXPECT_EQ(job.ddp_modules, 2);
  EXPECT_TRUE(job.bucket_views);
  EXPECT_TRUE(test::warns(job, "2 DistributedDataParallel modules"));
  EXPECT_TRUE(job.warnings.front().starts_with(
      "no plain data-parallel job: a step has 5 all_to_all of its own"));
  EXPECT_FALSE(test::warns(job, "collectives per step carry no gradients that can be told"));
  ASSERT_EQ(job.ranks.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(job.ranks[i].rank, static_cast<int>(i));
    ASSERT_EQ(job.ranks[i].steps.size(), 1u);
    const Step& step = job.ranks[i].steps[0];
    EXPECT_GE(step.cpu, 12.5 * kMs);
    EXPECT_LE(step.cpu, 19.95 * kMs);
    EXPECT_EQ(step.stages, 0);
    EXPECT_NEAR(test::sum_of(step), step.gpu, 1e-9);
    EXPECT_EQ(step.gradients.size(), 15u);  // one more arrives undefined
    std::vector<std::pair<std::int64_t, std::vector<int>>> buckets;
    for (const ObservedExchange& sent : all_reduces(step)) {
      buckets.emplace_back(sent.elements, sent.gradients);
    }
    EXPECT_EQ(buckets, (decltype(buckets){{394241, {0, 1, 2, 3, 4, 5}},
                                          {112, {8}},
                                          {226960, {6, 7, 9, 10, 11, 12, 13, 14}}}));
  }
}

TEST(Kineto, DlrmsCollectivesTakeWhatTheLatestRankTakes) {
  const Observed job = read_job(dlrm());
  std::vector<std::pair<int, int>> spans;
  for (const Skew& skew : job.skew) {
    const ObservedExchange& exchange = job.ranks[0].steps[0].exchanges[skew.exchange];
    EXPECT_EQ(exchange.time, skew.least);
    if (exchange.kind != "all_reduce") continue;
    spans.emplace_back(std::lround(1e6 * skew.least), std::lround(1e6 * skew.most));
  }
  EXPECT_EQ(spans, (std::vector<std::pair<int, int>>{{86, 307}, {20, 602}, {69, 952}}));
  for (const Rank& rank : job.ranks) {
    EXPECT_NEAR(all_reduces(rank.steps[0])[0].time, 86e-6, 1e-9);
    EXPECT_NEAR(all_reduces(rank.steps[0])[1].time, 20e-6, 1e-9);
    EXPECT_NEAR(all_reduces(rank.steps[0])[2].time, 69e-6, 1e-9);
  }
  EXPECT_EQ(job.skew[4].last_rank, 7);  // the first all-reduce waited for rank 7
}

TEST(Kineto, RanksAreOfOneJobAndListedOnce) {
  EXPECT_TRUE(contains(refusal_of_files(dlrm_files({5, 3, 5})), "rank 5 once more"));
  const auto beside_resnet = [](int rank) {
    return refusal_of_files({dlrm_files({rank}).front(), kResNet50});
  };
  EXPECT_TRUE(contains(beside_resnet(0), "rank 0 once more"));
  EXPECT_TRUE(contains(beside_resnet(3), "of 8 ranks, but"));
  EXPECT_TRUE(test::warns(read_job(dlrm_files({5, 3})), "2 of 8 ranks"));
}

TEST(Kineto, CollectivesHaveOneNameWhoeverNamesThem) {
  const std::pair<const char*, std::vector<const char*>> rows[] = {
      {"all_reduce",
       {"nccl:all_reduce", "gloo:all_reduce", "c10d::allreduce_", "allreduce_coalesced",
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long)",
        "ncclDevKernel_AllReduce_Sum_f32_TREE_LL(ncclDevComm*)"}},
      {"barrier", {"nccl:all_reduce_barrier"}},
      {"all_gather", {"nccl:_all_gather_base", "c10d::_allgather_base_"}},
      {"reduce_scatter", {"nccl:_reduce_scatter_base", "nccl:reduce_scatter_tensor_coalesced"}},
      {"all_to_all", {"c10d::alltoall_base_", "all_to_allv"}},
      {"send_recv", {"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)"}},
      {"broadcast", {"ncclDevKernel_Broadcast_RING_LL"}},
      {"reduce", {"nccl:reduce"}},
      {"deep_ep",
       {"void deep_ep::internode::dispatch<false, 4>(int4*, float*)",
        "void deep_ep::intranode::combine<__nv_bfloat16, 8>(int4*)"}},
      {"",
       {"ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "nccl:coalesced",
        "record_param_comms"}},
  };
  for (const auto& [kind, names] : rows) {
    for (const char* name : names) EXPECT_EQ(collective_kind(name), kind) << name;
  }
}

TEST(Kineto, AJobOnTheCpuIsRefusedByName) {
  EXPECT_EQ(test::refusal_of_job(test::kineto_sample("cpu_only.json.gz")),
            "a job on the CPU (gloo): its trace has no kernels to time gradients by; `syncline "
            "record` measures such a job");
}

// Steps of 100 ms, of which the device works for 51: the rest the host spends on something between
// the update of one and the forward pass of the next.
std::string gaps(const std::string& what, int steps = 3, bool marked = true) {
  using test::trace_event;
  constexpr test::Nano kMilli = 1'000'000;
  std::vector<std::string> events;
  int id = 0;
  const auto launch = [&](const std::string& thread, test::Nano call, test::Nano begin,
                          test::Nano end, const char* kernel) {
    const std::string own = "\"correlation\": " + std::to_string(++id);
    events.push_back(
        trace_event("cuda_runtime", "cudaLaunchKernel", 1, thread, call, call + 2000, own));
    events.push_back(
        trace_event("kernel", kernel, 0, "7", begin, end, own + ", \"stream\": 7, \"device\": 0"));
  };
  for (int i = 0; i < steps; ++i) {
    const test::Nano at = (1000 + 100 * i) * kMilli;
    const test::Nano go = at + 40 * kMilli;
    if (marked) {
      events.push_back(trace_event("user_annotation", "ProfilerStep#" + std::to_string(3 + i), 1,
                                   "1", at, at + 100 * kMilli - 1000, ""));
    }
    if (!what.empty()) {
      events.push_back(trace_event("cpu_op", what, 1, "1", at + 10'000, go - 10'000, ""));
    }
    launch("1", go + 100'000, go + 110'000, go + 20 * kMilli, "gemm");
    for (int k = 0; k < 2; ++k) {
      const test::Nano call = go + 200'000 + 200'000 * k;
      launch("2", call, go + (20 + 15 * k) * kMilli, go + (35 + 15 * k) * kMilli, "gemm_back");
      const std::string node = "\"Input Dims\": [[1000, 1000]], \"Input type\": [\"float\"]";
      events.push_back(trace_event(
          "cpu_op", "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 1, "2",
          call + 50'000, call + 80'000, ""));
      events.push_back(trace_event("cpu_op", "torch::autograd::AccumulateGrad", 1, "2",
                                   call + 51'000, call + 79'000, node));
    }
    events.push_back(trace_event("user_annotation", "Optimizer.step#SGD.step", 1, "1", go + 800'000,
                                 go + 1'000'000, ""));
    launch("1", go + 811'000, go + 50 * kMilli, go + 51 * kMilli, "multi_tensor_apply");
  }
  return "{" + test::trace_head("NVIDIA A100-SXM4-80GB", 1, 0, 2) + ", " +
         test::trace_events(events) + "}";
}

Observed read_gaps(const std::string& text) {
  const test::Scratch scratch;
  const std::string path = scratch.path("gaps.json");
  test::write_text(path, text);
  return read_job({path});
}

// A step reaches from one step's begin to the next one's: what the host does between them is part
// of it, of the scenario that is made of it, and has a name.
TEST(Kineto, TimeBetweenStepsIsPartOfTheStep) {
  for (const bool marked : {true, false}) {
    const Observed job =
        read_gaps(gaps("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 3, marked));
    ASSERT_EQ(job.ranks[0].steps.size(), 3u);
    for (const Step& step : job.ranks[0].steps) {
      EXPECT_NEAR(step.gpu, 0.1, 1e-9);
      EXPECT_NEAR(step.between, 0.04911, 1e-9);
      EXPECT_NEAR(step.between_idle, step.between, 1e-9);
      EXPECT_NEAR(test::sum_of(step), step.gpu, 1e-9);
    }
    EXPECT_TRUE(test::warns(job, "between two steps pass 49.1 ms of the 100.0 ms"));
    EXPECT_TRUE(test::warns(job, "data loading (DataLoader) 40.0 ms"));
    EXPECT_FALSE(test::warns(job, "the host is slower than the device"));
    const Imported imported = scenario_of(job, {});
    EXPECT_NEAR(imported.scenario.at("published")[0].at("step_time_s").get<double>(), 0.1, 1e-6);
    EXPECT_NEAR(imported.scenario.at("workload").at("host_gap_ms").get<double>(), 49.11, 0.01);
  }
  const Observed other = read_gaps(gaps(""));
  EXPECT_NEAR(other.ranks[0].steps[0].gpu, 0.1, 1e-9);
  EXPECT_TRUE(test::warns(other, "which the trace does not name"));
  EXPECT_TRUE(test::warns(read_gaps(gaps("aten::item")), "values read back (.item()) 40.0 ms"));
  // One step alone has no next one.
  EXPECT_NEAR(read_gaps(gaps("", 1)).ranks[0].steps[0].gpu, 0.05089, 1e-9);
}

}  // namespace
}  // namespace syncline::job::kineto
