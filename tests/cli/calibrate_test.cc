// `syncline calibrate` as a user calls it: files out, formats, and what is said of logs that do not
// do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/json/text.h"
#include "tests/support/expect.h"
#include "tests/support/said.h"
#include "tests/support/scratch.h"

namespace syncline::cli {
namespace {

using test::scratch;
using test::text_of;

const std::string kLogs = std::string(SYNCLINE_SOURCE_DIR) + "/scenarios/measured/nccl-tests/";
const std::string kPcie = kLogs + "a100pcie-ib-gdr_allreduce_medium_n002x1.txt";

using test::Said;

Said calibrate(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "calibrate");
  return test::say(std::move(arguments));
}

Said calibrate_logs(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "logs");
  return calibrate(std::move(arguments));
}

std::string written(const std::string& name, const std::string& text) {
  test::write_text(scratch().path(name), text);
  return scratch().path(name);
}

TEST(CalibrateVerb, AnswersInJsonAsDescribed) {
  const std::string other = kLogs + "a100pcie-ib-gdr_allgather_medium_n002x1.txt";
  const Said said = calibrate_logs({kPcie, "--against", other, "--format", "json"});
  ASSERT_EQ(said.code, 0) << said.err;
  const auto answer = nlohmann::json::parse(said.out);
  EXPECT_EQ(answer.at("verb"), "calibrate");
  ASSERT_EQ(answer.at("fitted").size(), 1u);
  EXPECT_GT(answer.at("fitted")[0].at("rows").size(), 10u);
  EXPECT_FALSE(answer.at("facts").empty());
  EXPECT_LT(answer.at("in_sample_percent").get<double>(), 1);
  EXPECT_LT(answer.at("left_out_percent").get<double>(), 1);
  ASSERT_EQ(answer.at("against").size(), 1u);
  const auto& against = answer.at("against")[0];
  EXPECT_EQ(against.at("file"), other);
  ASSERT_EQ(against.at("rows").size(), 103u);
  const auto& row = against.at("rows")[0];
  EXPECT_EQ(row.size(), 8u) << "both ends of the interval are there";
  EXPECT_NEAR(row.at("error_percent").get<double>(),
              (row.at("predicted_s").get<double>() / row.at("measured_s").get<double>() - 1) * 100,
              1e-9);
  EXPECT_EQ(row.at("bytes"), 1048576);
  EXPECT_NEAR(row.at("measured_s").get<double>(), 104.03e-6, 1e-9);
  EXPECT_GT(row.at("predicted_s").get<double>(), 0);
}

// A poor log is told what holds that kind of fabric back, and nothing of other kinds.
TEST(CalibrateVerb, CausesAreThoseOfTheNodesFabric) {
  struct Poor {
    const char* log;
    const char* node;
    std::vector<const char*> said, silent;
  };
  for (const Poor& poor :
       {Poor{"h100-a3mega-gcp_allreduce_n002x8.txt",
             "dgx-h100",
             {"NET/Socket", "NCCL_NET_GDR_LEVEL", "NCCL_IB_HCA", "NCCL_PROTO=Simple"},
             {"NSOCKS", "aws-ofi"}},
        Poor{"2080ti-10gbe-tcp_allreduce_default_n008x4.txt",
             "a2-highgpu-8g",
             {"NCCL_NSOCKS_PERTHREAD", "NCCL_SOCKET_IFNAME"},
             {"GDR", "NCCL_IB_HCA", "NCCL_PROTO=Simple"}},
        Poor{"gh200-alps-docs-tcp_allreduce_n002x4.txt",
             "alps-gh200",
             {"aws-ofi-nccl", "NCCL_NET_GDR_LEVEL", "NCCL_CROSS_NIC"},
             {"NSOCKS", "NCCL_IB_HCA"}},
        Poor{"h100-cluster01-nvswitch_allreduce_n001x4.txt",
             "dgx-b200",
             {"P2P", "nvidia-smi nvlink"},
             {"NSOCKS", "NCCL_IB_HCA", "GDR"}}}) {
    const Said said = calibrate_logs({kLogs + poor.log, "--node", poor.node});
    ASSERT_EQ(said.code, 0) << said.err;
    EXPECT_NE(said.out.find("poor"), std::string::npos) << poor.log;
    for (const char* part : poor.said) {
      EXPECT_NE(said.out.find(part), std::string::npos) << poor.log << ": " << part;
    }
    for (const char* part : poor.silent) {
      EXPECT_EQ(said.out.find(part), std::string::npos) << poor.log << ": " << part;
    }
  }
}

// The tiers of one set of nodes, from the command line: the ring by what the default choice showed,
// the tree by its factor on the other network.
TEST(CalibrateVerb, ForcedAlgorithmsFromNetworkToNetwork) {
  const std::string slow = kLogs + "2080ti-10gbe-tcp_allreduce_";
  const std::string fast = kLogs + "2080ti-100gib_allreduce_";
  const auto median = [](const Said& said) {
    std::vector<double> errors;
    const auto answer = nlohmann::json::parse(said.out);
    for (const auto& row : answer.at("against").at(0).at("rows")) {
      const double measured = row.at("measured_s");
      errors.push_back(std::abs(row.at("predicted_s").get<double>() / measured - 1));
    }
    std::sort(errors.begin(), errors.end());
    return errors.at(errors.size() / 2);
  };
  const Said ring = calibrate_logs({slow + "default_n008x4.txt", "--against",
                                    slow + "ring_n016x1.txt:ring", "--format", "json"});
  ASSERT_EQ(ring.code, 0) << ring.err;
  EXPECT_LT(median(ring), 0.10);
  const std::string cluster = scratch().path("forced.json");
  for (const auto& [here, there] : {std::pair{slow, fast}, {fast, slow}}) {
    const Said other = calibrate_logs(
        {there + "default_n008x4.txt", there + "tree_n016x1.txt:tree", "-o", cluster});
    ASSERT_EQ(other.code, 0) << other.err;
    const Said tree =
        calibrate_logs({here + "default_n008x4.txt", "--factor-from", cluster, "--against",
                        here + "tree_n016x1.txt@16x1:tree", "--format", "json"});
    ASSERT_EQ(tree.code, 0) << tree.err;
    EXPECT_LT(median(tree), 0.08) << here;
  }
  // A cluster without a forced tree has no factor, a text has no calibration, all-gather no tree.
  calibrate_logs({slow + "default_n008x4.txt", "-o", cluster});
  EXPECT_EQ(calibrate_logs({kPcie, "--factor-from", cluster}).code, 2);
  EXPECT_EQ(calibrate_logs({kPcie, "--factor-from", written("none.json", "{}")}).code, 2);
  EXPECT_TRUE(test::refused(calibrate_logs({kLogs + "a100pcie-ib-gdr_allgather_medium_n002x1.txt",
                                            "--algorithm", "tree"}),
                            "all_reduce only"));
}

TEST(CalibrateVerb, WritesAClusterAndAPictureThatDoNotChange) {
  const std::string cluster = scratch().path("calibrated.json");
  const std::string picture = scratch().path("calibrated.svg");
  std::string first;
  for (int time = 0; time < 2; ++time) {
    const Said said = calibrate_logs({kPcie, "-o", cluster, "--svg", picture, "--name", "pcie"});
    ASSERT_EQ(said.code, 0) << said.err;
    EXPECT_NE(said.out.find("Fitted: all_reduce, 2 x 1 GPUs"), std::string::npos);
    const std::string all = text_of(cluster) + text_of(picture) + said.out;
    if (time == 0) first = all;
    EXPECT_EQ(all, first);
  }
  EXPECT_EQ(nlohmann::json::parse(text_of(cluster)).at("name"), "pcie");
  EXPECT_EQ(text_of(picture).rfind("<svg", 0), 0u);
}

TEST(CalibrateVerb, TakesTheCountsFromTheNameIfTheLogHasNone) {
  const std::string bare = written("bare.txt",
                                   "# size count type redop root time algbw busbw #wrong time "
                                   "algbw busbw #wrong\n"
                                   "1048576 262144 float sum -1 100.0 10.49 18.35 0 100.0 10.49 "
                                   "18.35 0\n"
                                   "4194304 1048576 float sum -1 250.0 16.78 29.36 0 250.0 16.78 "
                                   "29.36 0\n");
  EXPECT_TRUE(test::refused(calibrate_logs({bare}), "@NODESxGPUS"));
  const Said with = calibrate_logs({bare + "@1x8"});
  EXPECT_EQ(with.code, 0) << with.err;
  const Said wrong = calibrate_logs({bare + "@3x8"});
  EXPECT_EQ(wrong.code, 2);
}

// What is odd about a log stands in the answer, whatever its form; beside it where that is CSV.
TEST(CalibrateVerb, SaysWhatIsOddAboutALogInEveryForm) {
  const std::string log = written("failed.txt",
                                  "# COLLECTIVE: all_reduce_perf\n# NODES: 2\n# GPUS: 2\n"
                                  "# size count type redop root time algbw busbw #wrong\n"
                                  "1048576 262144 float sum -1 126.5 8.29 8.29 0\n"
                                  "4194304 1048576 float sum -1 262.6 15.97 15.97 0\n"
                                  "# Out of bounds values : 7 FAILED\n");
  for (const std::string form : {"table", "markdown", "csv", "json"}) {
    const Said said = calibrate_logs({log, "--format", form});
    ASSERT_EQ(said.code, 0) << said.err;
    EXPECT_NE((said.out + said.err).find("7 values out of bounds"), std::string::npos) << form;
  }
}

TEST(CalibrateVerb, SaysWhatIsWrongWithLogs) {
  EXPECT_EQ(calibrate_logs({}).code, 2);
  EXPECT_EQ(calibrate_logs({"/nowhere.txt"}).code, 2);
  EXPECT_EQ(calibrate_logs({written("empty.txt", "nothing\n")}).code, 2);
  EXPECT_TRUE(
      test::refused(calibrate_logs({kLogs + "p100-pcie_gather_n001x2.txt"}), "found gather"));
  EXPECT_TRUE(test::refused(
      calibrate_logs({kLogs + "a100pcie-internal_allreduce_medium_n001x2.txt", "--against", kPcie}),
      "none of them is of several nodes"));
}

TEST(CalibrateVerb, FitsMeasuredStepsAndRunTakesWhatItWrites) {
  const std::string job = written("job.json", R"({"name": "job",
      "workload": {"name": "w", "forward_ms": 5, "tensors": [
        {"name": "b", "shape": [2000000], "backward_us": 10000},
        {"name": "a", "shape": [2000000], "backward_us": 10000}]},
      "cluster": {"name": "c", "nodes": 2, "gpus_per_node": 1, "library": "nccl",
        "inter": {"latency_us": 10, "bandwidth_gbps": 10}},
      "strategies": [{"name": "each"}, {"name": "all", "fusion": {"rule": "one"}}],
      "published": [{"strategy": "each", "step_time_s": 0.036},
                    {"strategy": "all", "step_time_s": 0.040}]})");
  const std::string fitted = scratch().path("fitted.json");
  const Said said = calibrate({"steps", job, "--rows", "each", "-o", fitted});
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("predicted"), std::string::npos) << said.out;
  const Said again = calibrate({"steps", job, "--rows", "1", "--format", "json"});
  const auto answer = nlohmann::json::parse(again.out);
  ASSERT_EQ(answer.at("rows").size(), 2u);
  EXPECT_TRUE(answer.at("rows")[0].at("fitted").get<bool>());
  EXPECT_FALSE(answer.at("rows")[1].at("fitted").get<bool>());
  const Said run = test::say({"run", fitted, "--format", "json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NEAR(nlohmann::json::parse(run.out).at("rows")[0].at("step_time_s").get<double>(),
              answer.at("rows")[0].at("after_s").get<double>(), 1e-6);
  EXPECT_EQ(calibrate({"steps", "--rows", "1"}).code, 2);
  EXPECT_EQ(calibrate({"steps", job, kPcie}).code, 2);
  EXPECT_EQ(calibrate_logs({kPcie, "--steps", job}).code, 2);
  EXPECT_EQ(calibrate({"steps", job, "--rows", "nobody"}).code, 2);
}

TEST(Calibrate, LogsOfTwoKindsOfGpuAreTwoClusters) {
  const std::string a100 = kLogs + "a100-p4d-efa_allreduce_n002x8.txt";
  const auto on = [&](const std::string& device) {
    std::string other = text_of(a100);
    const std::string name = "A100-SXM4-40GB";
    for (auto at = other.find(name); at != std::string::npos; at = other.find(name, at + 1)) {
      other.replace(at, name.size(), device);
    }
    return other;
  };
  const Said said = calibrate_logs({a100, written("gh200.txt", on("NVIDIA GH200 120GB"))});
  EXPECT_EQ(said.code, 2);
  EXPECT_NE(said.err.find("the logs name different GPUs, A100-SXM4-40GB and NVIDIA GH200 120GB"),
            std::string::npos)
      << said.err;
  // Another memory is no other network.
  EXPECT_EQ(calibrate_logs({a100, written("80.txt", on("NVIDIA A100-SXM4-80GB"))}).code, 0);
}

TEST(Calibrate, ALineRateInGigabytesIsUncertain) {
  const std::string log = kLogs + "a100-p4d-efa_allreduce_n002x8.txt";
  const Said mistake = calibrate_logs({log, "--line-rate", "50"});
  EXPECT_NE(mistake.out.find("were GB/s meant (400 Gbit/s)?"), std::string::npos) << mistake.out;
  EXPECT_LT(mistake.out.find("Doubtful:"), mistake.out.find("Mean error")) << mistake.out;
  EXPECT_EQ(calibrate_logs({log, "--line-rate", "400"}).out.find("Doubtful"), std::string::npos);
}

TEST(Calibrate, CountsAfterAnAtNeedBothNumbers) {
  EXPECT_TRUE(test::refused(calibrate_logs({kPcie + "@16"}), "expected " + kPcie + "@NODESxGPUS"));
}

// `calibrate kernels` as a user calls it.

const std::string kCluster =
    std::string(SYNCLINE_SOURCE_DIR) + "/scenarios/clusters/v100_4x8_100g.json";

// 100 M elements at 2 TB/s.
std::string measured() {
  return written("gpu.json", R"({"format": "syncline gpu-check 1", "rehearsal": false,
    "machine": {"name": "a GPU"}, "launch": {"submit_us": 3, "gap_us": 1},
    "timings": [{"case": "pack fp32", "kind": "pack", "elements": 100000000,
                 "counted_bytes": 800000000, "us": 400}]})");
}

TEST(CalibrateKernels, WritesTheDeviceOfACluster) {
  const std::string out = scratch().path("with_kernels.json");
  const Said said = calibrate({"kernels", measured(), "--cluster", kCluster, "-o", out});
  ASSERT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("memory_gbytes_per_s = 2000"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("pack fp32"), std::string::npos);
  const Json made = read_json_file(out);
  EXPECT_EQ(made.at("device").at("memory_gbytes_per_s"), 2000);
  EXPECT_EQ(made.at("device").at("launch_us"), 3);
  EXPECT_EQ(made.at("device").at("host_sync_us"), 20);  // as it was
  EXPECT_EQ(made.at("inter"), read_json_file(kCluster).at("inter"));
}

TEST(CalibrateKernels, JoinsLogsToo) {
  const std::string out = scratch().path("logs_and_kernels.json");
  const Said said = calibrate_logs({kPcie, "--kernels", measured(), "-o", out});
  ASSERT_EQ(said.code, 0) << said.err;
  const Json made = read_json_file(out);
  EXPECT_TRUE(made.contains("calibration"));
  EXPECT_EQ(made.at("device").at("memory_gbytes_per_s"), 2000);
}

TEST(CalibrateKernels, SaysWhatIsMissing) {
  EXPECT_TRUE(test::refused(calibrate({}), "logs: expected at least one"));
  EXPECT_TRUE(test::refused(calibrate({"kernels", measured()}), "--cluster"));
  EXPECT_TRUE(test::refused(calibrate({"kernels", "/no/file.json", "--cluster", kCluster}),
                            "/no/file.json"));
}

// Before calibrate had verbs, options chose what it reads: the same answers, and what to write now.
TEST(CalibrateOldForm, AnswersTheSameAndNamesTheVerb) {
  const std::string steps = std::string(SYNCLINE_SOURCE_DIR) + "/scenarios/record/mlp.json";
  const std::string kernels = measured();
  struct Form {
    std::vector<std::string> old, now;
  };
  for (const auto& [old, now] : {
           Form{{kPcie, "--format", "json"}, {"logs", kPcie, "--format", "json"}},
           Form{{"--name", "live", kPcie}, {"logs", "--name", "live", kPcie}},
           Form{{kPcie, "--kernels", kernels}, {"logs", kPcie, "--kernels", kernels}},
           Form{{"--steps", steps, "--rows", "1"}, {"steps", steps, "--rows", "1"}},
           Form{{"--rows", "1", "--steps=" + steps}, {"steps", "--rows", "1", steps}},
           Form{{"--kernels", kernels, "--cluster", kCluster},
                {"kernels", kernels, "--cluster", kCluster}},
           Form{{"--cluster=" + kCluster, "--kernels=" + kernels},
                {"kernels", kernels, "--cluster", kCluster}},
       }) {
    SCOPED_TRACE(testing::PrintToString(old));
    const Said before = calibrate(old), after = calibrate(now);
    EXPECT_EQ(before.code, 0) << before.err;
    EXPECT_EQ(before.out, after.out);
    EXPECT_EQ(after.err, "");
    EXPECT_EQ(before.err,
              "syncline: calibrate has verbs of its own: use syncline calibrate " + now[0] + "\n");
  }
}

TEST(CalibrateOldForm, IncompatibleOptionsAreStillRefused) {
  for (const auto& [words, why] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--rows", "1"}, "--rows"},
           {{kPcie, "--steps", "x.json"}, "not expected"},
           {{"--live", "gloo", "--steps", "x.json"}, "--steps"},
           {{"--live", "mpi"}, "gloo"},
           {{"--kernels", measured()}, "--kernels needs logs, or --cluster"},
           {{kPcie, "--kernels", measured(), "--cluster", kCluster}, "not expected"}}) {
    EXPECT_TRUE(test::refused(calibrate(words), why)) << testing::PrintToString(words);
  }
}

// A verb has its own options alone.
TEST(CalibrateVerbs, TakeNoOptionsOfOthers) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"logs", kPcie, "--cluster", kCluster},
        {"logs", kPcie, "--ranks", "2"},
        {"steps", "x.json", "--node", "dgx-h100"},
        {"live", "gloo", "--rows", "1"},
        {"kernels", "x.json", "--cluster", kCluster, "--name", "x"},
        {"--name", "x", "logs", kPcie}}) {
    EXPECT_EQ(calibrate(words).code, 2) << testing::PrintToString(words);
  }
}

}  // namespace
}  // namespace syncline::cli
