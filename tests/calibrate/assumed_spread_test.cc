// The figures of core/collective/assumed_spread.h against the logs that they were found on.
#include "core/collective/assumed_spread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/calibrate/log_files.h"
#include "core/collective/nccl.h"
#include "core/collective/price.h"

namespace syncline::calibrate {
namespace {

// What data sheets say of the machines of a log, by how its file's name begins.
struct Machine {
  std::string log;
  int capability;
  double inside;  // GB/s of a GPU
  double nic;     // Gbit/s
  int nics;
  double latency;  // between nodes, us
  bool direct;
  bool nvswitch;
  bool amd;
};

const std::vector<Machine>& machines() {
  static const std::vector<Machine> kAll = {
      {"2080ti-100gib", 75, 15.75, 100, 1, 5, true, false, false},
      {"2080ti-10gbe", 75, 15.75, 10, 1, 25, false, false, false},
      {"a100-echo", 80, 300, 200, 8, 5, true, true, true},
      {"a100-ndv4", 80, 300, 200, 8, 5, true, true, true},
      {"a100-p4d", 80, 300, 100, 4, 15, true, true, false},
      {"a100-polaris-slingshot-nccl2.18-setup1", 80, 300, 100, 2, 5, true, false, true},
      {"a100-polaris-slingshot-nccl2.18-setup5", 80, 300, 200, 2, 5, true, false, true},
      {"a100pcie", 80, 31.5, 200, 1, 5, true, false, false},
      {"dstack-gcp-a3high", 90, 450, 200, 4, 25, true, true, false},
      {"dstack-gcp-a4", 100, 900, 400, 8, 5, true, true, false},
      {"gh200-alps-docs-tcp", 90, 450, 200, 4, 25, false, false, false},
      {"gh200-alps", 90, 450, 200, 4, 5, true, false, false},
      {"h100-a3high", 90, 450, 200, 4, 25, true, true, false},
      {"h100-a3mega", 90, 450, 200, 8, 25, true, true, false},
      {"h100-cluster01", 90, 450, 400, 8, 5, true, true, false},
      {"h100-p5", 90, 450, 100, 32, 15, true, true, true},
      {"t4-g4dn-efa", 75, 15.75, 50, 1, 15, false, false, false},
      {"t4-g4dn-karpenter", 75, 15.75, 50, 1, 25, false, false, false},
      {"v100-p3dn", 70, 150, 100, 1, 15, false, false, false},
  };
  return kAll;
}

const Machine* machine_of(const std::string& file) {
  const Machine* best = nullptr;
  for (const Machine& machine : machines()) {
    const bool longer = best == nullptr || machine.log.size() > best->log.size();
    if (file.starts_with(machine.log) && longer) best = &machine;
  }
  return best;
}

Cluster cluster_of(const Machine& machine, int nodes, int gpus) {
  Cluster cluster;
  cluster.nodes = nodes;
  cluster.gpus_per_node = gpus;
  cluster.collective_overhead = 10 * kMicrosecond;
  cluster.nccl.compute_capability = machine.capability;
  cluster.nccl.gpu_direct = machine.direct;
  cluster.nccl.nvswitch = machine.nvswitch && gpus >= 2;
  if (machine.amd) cluster.nccl.cpu = NcclHints::Cpu::kAmd;
  const bool nvlink = machine.inside > 64;
  if (gpus > 1) {
    cluster.tiers.push_back({.name = "intra",
                             .span = gpus,
                             .latency = (nvlink ? 2 : 5) * kMicrosecond,
                             .bandwidth = machine.inside * kGigabytePerSecond});
  }
  // A GPU by itself goes out by the NIC beside it.
  const int nics = std::min(machine.nics, gpus < 4 ? gpus : machine.nics);
  if (nodes > 1) {
    cluster.tiers.push_back({.name = "inter",
                             .span = gpus * nodes,
                             .latency = machine.latency * kMicrosecond,
                             .bandwidth = machine.nic * nics * kGigabitPerSecond,
                             .nics = nics});
  }
  return cluster;
}

// log(true / predicted), each with its network's weight.
using Errors = std::vector<std::pair<double, double>>;

double quantile(Errors errors, double share) {
  std::sort(errors.begin(), errors.end());
  double all = 0;
  for (const auto& [error, weight] : errors) all += weight;
  double sum = 0;
  for (const auto& [error, weight] : errors) {
    if ((sum += weight) >= share * all) return error;
  }
  return errors.back().first;
}

std::size_t class_of(Bytes size) { return size <= 64 * kKiB ? 0 : size <= 4 * kMiB ? 1 : 2; }

// By network, of each class of sizes.
std::map<std::string, std::array<std::vector<double>, 3>> errors_of_logs() {
  std::map<std::string, std::array<std::vector<double>, 3>> errors;
  for (const auto& entry :
       std::filesystem::directory_iterator(SYNCLINE_SOURCE_DIR "/scenarios/measured/nccl-tests")) {
    const std::string file = entry.path().filename();
    const Machine* machine = machine_of(file);
    const bool forced = file.find("_ring_") != file.npos || file.find("_tree_") != file.npos;
    if (machine == nullptr || forced) continue;
    for (const cost::MeasuredTable& table : read_nccl_log(entry.path())) {
      if (!table.kind || table.nodes == 0 || table.ranks < 2) continue;
      const Cluster cluster = cluster_of(*machine, table.nodes, table.gpus_per_node);
      collective::PriceBook book(cluster);
      const auto points = cost::usable_points(table, cost::Place::kOutOfPlace);
      for (std::size_t p = 0; p < points.size(); p += points.size() / 33 + 1) {
        collective::Collective asked{*table.kind,
                                     nullptr,
                                     collective::world_group(cluster.ranks()),
                                     std::max<Bytes>(1, points[p].size / 4),
                                     4,
                                     0,
                                     {}};
        collective::choose_algorithm(asked, collective::kNcclName, cluster);
        errors[machine->log][class_of(points[p].size)].push_back(
            std::log(points[p].time / book.time(asked)));
      }
    }
  }
  return errors;
}

TEST(AssumedSpread, IsWhatTheLogsSay) {
  const auto errors = errors_of_logs();
  EXPECT_GE(errors.size(), 17U);
  constexpr std::array<double, 3> kMiddles = {8.0 * kKiB, 512.0 * kKiB, 64.0 * kMiB};
  for (std::size_t c = 0; c < 3; ++c) {
    Errors all, sizes;
    for (const auto& [network, classes] : errors) {
      for (const double error : classes[c]) {
        const double weight = 1.0 / static_cast<double>(classes[c].size());
        all.emplace_back(error, weight);
        sizes.emplace_back(std::fabs(error), weight);
      }
    }
    EXPECT_NEAR(collective::assumed_bias(true, kMiddles[c]), quantile(all, 0.5), 0.1) << c;
    EXPECT_NEAR(collective::assumed_spread(true, kMiddles[c]), quantile(sizes, 0.8) / 1.2816, 0.1)
        << c;
  }
}

}  // namespace
}  // namespace syncline::calibrate
