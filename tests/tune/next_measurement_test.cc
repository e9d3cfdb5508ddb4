// What the next measurement is, and whether it narrows an answer as promised when it is made of
// logs that are here.
#include "studies/tune/certainty.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/statistics.h"
#include "studies/calibrate/calibration.h"
#include "studies/calibrate/log_files.h"
#include "studies/calibrate/prior_fit.h"
#include "tests/support/full_scenario.h"
#include "tests/support/tunings.h"

namespace syncline::tune {
namespace {

Json gpt2_on(Json cluster) {
  return {{"name", "next"},
          {"workload",
           {{"name", "gpt2_medium"},
            {"batch", 4},
            {"forward_ms", 60},
            {"backward_ms", 120},
            {"update_ms", 5},
            {"operators", {{"architecture", "gpt2_medium"}, {"sequence", 1024}}}}},
          {"cluster", std::move(cluster)},
          {"strategies",
           {{{"name", "DDP"}, {"dialect", "pytorch"}, {"config", Json::object()}},
            {{"name", "one"}, {"algorithm", "nccl"}, {"fusion", {{"rule", "one"}}}}}}};
}

struct Log {
  const char* file;
  Json cluster;  // from data sheets
};

// Of nodes of so many GPUs over a network, as data sheets say.
Json network(const char* device, int nodes, int gpus, double inside, double nic, int nics,
             double latency, const char* fabric) {
  Json cluster{{"name", "c"},
               {"nodes", nodes},
               {"gpus_per_node", gpus},
               {"library", "nccl"},
               {"collective_overhead_us", 10},
               {"device", {{"base", device}}}};
  if (gpus > 1) {
    cluster["intra"] = {{"latency_us", inside > 512 ? 2 : 5}, {"bandwidth_gbps", inside}};
  }
  if (nodes > 1) {
    cluster["inter"] = {{"latency_us", latency}, {"bandwidth_gbps", nic}, {"nics", nics}};
    cluster["fabric"] = fabric;
  }
  return cluster;
}

// Not that of p4d: its job files force rings (scenarios/measured/networks.json).
std::vector<Log> logs() {
  const auto alps = [](int nodes) {
    return network("gh200", nodes, 4, 3600, 200, 4, 5, "slingshot");
  };
  const auto polaris = [](int nodes, const char* fabric) {
    return network("a100-sxm-40gb", nodes, 4, 2400, 200, 2, fabric[0] == 't' ? 25 : 5, fabric);
  };
  const auto echo = [](int nodes, int gpus) {
    return network("a100-sxm-40gb", nodes, gpus, 2400, 200, 8, 5, "rdma");
  };
  const auto cluster01 = [](int nodes, int gpus) {
    return network("h100-sxm", nodes, gpus, 3600, 400, gpus, 5, "rdma");
  };
  const auto turing = [](double nic, const char* fabric) {
    return network("rtx-2080-ti", 8, 4, 126, nic, 1, fabric[0] == 't' ? 25 : 5, fabric);
  };
  return {
      {"2080ti-100gib_allreduce_default_n008x4.txt@8x4", turing(100, "rdma")},
      {"2080ti-100gib_allreduce_default-b_n008x4.txt@8x4", turing(100, "rdma")},
      {"2080ti-10gbe-tcp_allreduce_default_n008x4.txt@8x4", turing(10, "tcp")},
      {"2080ti-10gbe-tcp_allreduce_default-b_n008x4.txt@8x4", turing(10, "tcp")},
      {"a100-echo-ndv4_allreduce_gpu008.txt", echo(1, 8)},
      {"a100-echo-ndv4_allreduce_gpu016.txt", echo(2, 8)},
      {"a100-ndv4-nvswitch_allreduce_n001x8.txt@1x8", echo(1, 8)},
      {"a100-polaris-slingshot-nccl2.18-setup1_allreduce_n002x4.txt@2x4", polaris(2, "tcp")},
      {"a100-polaris-slingshot-nccl2.18-setup1_allreduce_n008x4.txt@8x4", polaris(8, "tcp")},
      {"a100-polaris-slingshot-nccl2.18-setup5_allreduce_n002x4.txt@2x4", polaris(2, "slingshot")},
      {"a100-polaris-slingshot-nccl2.18-setup5_allreduce_n008x4.txt@8x4", polaris(8, "slingshot")},
      {"gh200-alps-slingshot-ofi1.9.2_allreduce_n002x4.txt", alps(2)},
      {"gh200-alps-slingshot-ofi1.9.2_allreduce_n004x4.txt", alps(4)},
      {"gh200-alps-slingshot-ofi1.9.2_allreduce_n008x4.txt", alps(8)},
      {"gh200-alps-slingshot-ofi1.9.2_allreduce_n016x4.txt", alps(16)},
      {"gh200-alps-slingshot-ofi1.9.2_allreduce_n032x4.txt", alps(32)},
      {"h100-cluster01-ib_allreduce_n010x1.txt@10x1", cluster01(10, 1)},
      {"h100-cluster01-ib_allreduce_n010x2.txt@10x2", cluster01(10, 2)},
      {"h100-cluster01-nvswitch_allreduce_n001x8.txt@1x8", cluster01(1, 8)},
      {"h100-cluster01-nvswitch_allreduce_n001x4.txt@1x4", cluster01(1, 4)},
      {"h100-a3mega-gcp_allreduce_n002x8.txt@2x8",
       network("h100-sxm", 2, 8, 3600, 200, 8, 25, "tcpx")},
      {"v100-p3dn-efa_allreduce_n002x8.txt@2x8",
       network("v100-sxm-32gb", 2, 8, 1200, 100, 1, 15, "efa")},
      {"t4-g4dn-efa_allreduce_n002x1.txt@2x1", network("t4", 2, 1, 0, 50, 1, 15, "efa")},
  };
}

double width(const measure::Interval& interval) { return std::log(interval.high / interval.low); }

// The step's interval before, as promised, and with the log in place of the data sheet: in the
// median as wide as promised, and wider by more than a quarter where a log has a hole at these
// sizes or few rows. The answer then lies in the first interval.
TEST(NextMeasurement, LogsNarrowAsPromised) {
  std::vector<double> kept, promised_of;
  double held = 0, narrower = 0, count = 0, least = 0;
  for (const Log& log : logs()) {
    const Scenario before = test::parsed(gpt2_on(log.cluster));
    const auto calibration = calibrate::calibration_of(
        calibrate::read_tables(
            {std::string(SYNCLINE_SOURCE_DIR "/scenarios/measured/nccl-tests/") + log.file}),
        {}, "log");
    Json cluster = calibration.cluster;
    cluster["nodes"] = log.cluster["nodes"];
    cluster["gpus_per_node"] = log.cluster["gpus_per_node"];
    cluster["device"] = log.cluster["device"];
    const Scenario after = test::parsed(gpt2_on(cluster));
    const Strategy& strategy = before.strategies.front();
    const Seconds said = step_by_model(before, strategy),
                  told = step_by_model(after, after.strategies.front());
    const auto interval =
        measure::interval_of(said, measure::Uncertainties(before).sensitivity(strategy));
    const auto promised = measure::interval_of(
        said, measure::Uncertainties(before, remaining_fit_errors(Probe::kLogs, {}))
                  .sensitivity(strategy));
    const auto got = measure::interval_of(
        told, measure::Uncertainties(after).sensitivity(after.strategies.front()));
    count += 1;
    held += interval.low <= told && told <= interval.high;
    narrower += width(got) <= width(interval);
    least += width(got) <= 1.25 * width(promised) + 0.01;
    kept.push_back(width(got) / width(promised));
    RecordProperty(std::string(log.file).substr(0, 60),
                   std::to_string(width(interval)) + " promised " +
                       std::to_string(width(promised)) + " got " + std::to_string(width(got)) +
                       " said " + std::to_string(said) + " told " + std::to_string(told));
  }
  RecordProperty("held", std::to_string(held / count));
  RecordProperty("narrower", std::to_string(narrower / count));
  RecordProperty("as promised", std::to_string(least / count));
  RecordProperty("median of got over promised", std::to_string(median(kept)));
  EXPECT_GE(count, 20);
  EXPECT_GE(held / count, 0.7);
  EXPECT_GE(narrower / count, 0.8);
  EXPECT_GE(least / count, 0.7);
  EXPECT_NEAR(median(kept), 1, 0.1);
}

std::optional<NextMeasurement> next_on(const Json& cluster) {
  TuneOptions options;
  options.budget = 60;
  return test::tuning_of(input::document_of("j", gpt2_on(cluster)), options).next;
}

TEST(NextMeasurement, IsOneLineOfNcclTestsIfTheNetworkIsUnknown) {
  const auto next = next_on(network("v100-sxm-32gb", 4, 8, 1200, 25, 1, 25, "tcp"));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->what, Probe::kLogs);
  EXPECT_LT(next->chance, 0.95);
  EXPECT_GT(next->chance_after, next->chance);
  EXPECT_LE(width(next->gain_after), width(next->gain_now));
  EXPECT_GT(next->saved, 0.0005);
}

// The sizes hold every payload of both, as powers of two; all ranks take part.
TEST(NextMeasurement, ItsLineHasTheSizesOfBothPlans) {
  const Scenario scenario =
      test::parsed(gpt2_on(network("v100-sxm-32gb", 4, 8, 1200, 25, 1, 25, "tcp")));
  const std::string line = log_command(scenario, scenario.strategies[0], scenario.strategies[1]);
  // GPT-2 medium has 355 M parameters in fp32: 1.42 GB in one bucket; DDP's least is its first.
  EXPECT_EQ(line, "mpirun -np 32 -N 8 all_reduce_perf -b 16M -e 2G -f 2 -g 1");
  const Scenario one = test::parsed(gpt2_on(network("h100-sxm", 1, 8, 3600, 0, 0, 0, "")));
  EXPECT_EQ(log_command(one, one.strategies[1], one.strategies[1]),
            "all_reduce_perf -b 1G -e 2G -f 2 -g 8");
  // Eight groups across the nodes share the ports: one all-reduce of all that they carry.
  Json sharded = gpt2_on(network("v100-sxm-32gb", 4, 8, 1200, 25, 1, 25, "tcp"));
  sharded["strategies"][1]["hierarchy"] = {{"form", "sharded"}, {"group_size", 8}};
  const Scenario across = test::parsed(sharded);
  EXPECT_EQ(log_command(across, across.strategies[1], across.strategies[1]),
            "mpirun -np 32 -N 8 all_reduce_perf -b 1G -e 2G -f 2 -g 1");
}

// Logs of a network that was calibrated tell nothing new; on the data sheet's own they are next.
TEST(NextMeasurement, LogsAreNotAskedForTwice) {
  const Json sheet = network("v100-sxm-32gb", 4, 8, 1200, 25, 1, 25, "tcp");
  EXPECT_EQ(next_on(sheet)->what, Probe::kLogs);
  Json calibrated = calibrate::calibration_of(
                        calibrate::read_tables({std::string(SYNCLINE_SOURCE_DIR) +
                                                "/scenarios/measured/nccl-tests/"
                                                "2080ti-10gbe-tcp_allreduce_default_n008x4.txt"}),
                        {}, "log")
                        .cluster;
  calibrated["device"] = sheet["device"];
  const auto next = next_on(calibrated);
  EXPECT_TRUE(!next || next->what != Probe::kLogs);
}

// The inputs that a measurement does not tell stay as they were.
TEST(NextMeasurement, EvaluatesMeasuredInputsAlone) {
  const Json sheet = network("v100-sxm-32gb", 4, 8, 1200, 25, 1, 25, "tcp");
  const Scenario scenario = test::parsed(gpt2_on(sheet));
  const Strategy& strategy = scenario.strategies.front();
  const auto now = measure::Uncertainties(scenario).sensitivity(strategy);
  for (const Probe probe : {Probe::kLogs, Probe::kSteps, Probe::kRecord}) {
    const Scenario measured = measured_scenario(probe, scenario);
    measure::Uncertainties after(measured, remaining_fit_errors(probe, {}));
    const auto all = after.sensitivity(strategy);
    EXPECT_EQ(after.sensitivity(strategy, now, told_inputs(probe)), all);
    EXPECT_FALSE(all == now);
  }
}

TEST(NextMeasurement, IsNoneIfTheChoiceIsClear) {
  EXPECT_FALSE(next_on(network("h100-sxm", 1, 1, 0, 0, 0, 0, "")));
}

}  // namespace
}  // namespace syncline::tune
