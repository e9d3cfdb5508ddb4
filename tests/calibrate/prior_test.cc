// The table of core/collective/prior.cc, worked out again from the logs that it was found on, and
// how it holds on each network that it was not found on.
#include "core/collective/prior.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/calibrate/log_files.h"
#include "core/collective/nccl.h"
#include "core/collective/price.h"

namespace syncline::calibrate {
namespace {

using collective::Path;

// What data sheets say of the machines of a log, by how its file's name begins.
struct Machine {
  std::string log;
  std::string site;  // logs of one network count as one
  int capability;
  double inside;  // GB/s of a GPU
  double nic;     // Gbit/s
  int nics;
  double latency;  // between nodes, us
  Fabric fabric;
  bool direct;
  bool nvswitch;
  bool amd;
};

const std::vector<Machine>& machines() {
  using enum Fabric;
  static const std::vector<Machine> kAll = {
      {"2080ti-100gib", "2080ti", 75, 15.75, 100, 1, 5, kRdma, true, false, false},
      {"2080ti-10gbe", "2080ti", 75, 15.75, 10, 1, 25, kTcp, false, false, false},
      {"a100-echo", "echo", 80, 300, 200, 8, 5, kRdma, true, true, true},
      {"a100-ndv4", "ndv4", 80, 300, 200, 8, 5, kRdma, true, true, true},
      {"a100-p4d", "p4d", 80, 300, 100, 4, 15, kEfa, true, true, false},
      {"a100-polaris-slingshot-nccl2.18-setup1", "polaris 1", 80, 300, 200, 2, 25, kTcp, false,
       false, true},  // sockets, as its log's first lines say
      {"a100-polaris-slingshot-nccl2.18-setup5", "polaris 5", 80, 300, 200, 2, 5, kSlingshot, true,
       false, true},
      {"a100pcie", "a100pcie", 80, 31.5, 200, 1, 5, kRdma, true, false, false},
      {"dstack-gcp-a3high", "a3high", 90, 450, 200, 4, 25, kTcpx, true, true, false},
      {"dstack-gcp-a4", "a4", 100, 900, 400, 8, 5, kRdma, true, true, false},
      {"gh200-alps-docs-tcp", "alps", 90, 450, 200, 4, 25, kTcp, false, false, false},
      {"gh200-alps", "alps", 90, 450, 200, 4, 5, kSlingshot, true, false, false},
      {"h100-a3high", "a3high", 90, 450, 200, 4, 25, kTcpx, true, true, false},
      {"h100-a3mega", "a3mega", 90, 450, 200, 8, 25, kTcpx, true, true, false},
      {"h100-cluster01", "cluster01", 90, 450, 400, 8, 5, kRdma, true, true, false},
      {"h100-p5", "p5", 90, 450, 100, 32, 15, kEfa, true, true, true},
      {"t4-g4dn-efa", "g4dn", 75, 15.75, 50, 1, 15, kEfa, false, false, false},
      {"t4-g4dn-karpenter", "g4dn", 75, 15.75, 50, 1, 25, kTcp, false, false, false},
      {"v100-p3dn", "p3dn", 70, 150, 100, 1, 15, kEfa, false, false, false},
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
  cluster.fabric = machine.fabric;
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

// A row: the payload, and log(true / said) of NCCL's model alone.
struct Row {
  double bytes;
  double error;
};

// What the rows of one site say of one kind of path, in classes of sizes.
struct Unit {
  std::string site;
  Path path;
  std::array<std::vector<Row>, 4> rows;
};

constexpr std::array<double, 4> kMiddles = {8.0 * kKiB, 512.0 * kKiB, 23.17 * kMiB, 1.0 * kGiB};

std::size_t class_of(Bytes size) {
  return size <= 64 * kKiB ? 0 : size <= 4 * kMiB ? 1 : size <= 128 * kMiB ? 2 : 3;
}

bool same_kind(const Path& a, const Path& b) {
  return a.across == b.across && a.nvlink == b.nvlink && a.fabric == b.fabric;
}

std::vector<Unit> units_of_logs() {
  std::vector<Unit> units;
  for (const auto& entry :
       std::filesystem::directory_iterator(SYNCLINE_SOURCE_DIR "/scenarios/measured/nccl-tests")) {
    const std::string file = entry.path().filename();
    const Machine* machine = machine_of(file);
    const bool forced = file.find("_ring_") != file.npos || file.find("_tree_") != file.npos;
    if (machine == nullptr || forced) continue;
    for (const cost::MeasuredTable& table : read_nccl_log(entry.path())) {
      if (!table.kind || table.nodes == 0 || table.ranks < 2) continue;
      const Cluster cluster = cluster_of(*machine, table.nodes, table.gpus_per_node);
      const collective::Groups world = collective::world_group(cluster.ranks());
      Path path = collective::path_of(cluster, world);
      if (!path.across) path.fabric = Fabric::kUnknown;
      if (path.across && path.fabric != Fabric::kRdma) path.nvlink = false;
      auto unit = std::ranges::find_if(units, [&](const Unit& known) {
        return known.site == machine->site && same_kind(known.path, path);
      });
      if (unit == units.end()) unit = units.insert(units.end(), {machine->site, path, {}});
      const collective::NcclLaw law(cluster);
      const auto points = cost::usable_points(table, cost::Place::kOutOfPlace);
      for (std::size_t p = 0; p < points.size(); p += points.size() / 33 + 1) {
        collective::Collective asked{
            *table.kind, nullptr, world, std::max<Bytes>(1, points[p].size / 4), 4, 0, {}};
        collective::choose_algorithm(asked, collective::kNcclName, cluster);
        const auto bytes = static_cast<double>(points[p].size);
        const CollectiveTime answer = *law.time(asked);
        const Seconds said = (answer.time + cluster.collective_overhead) / answer.stretch;
        const double error = std::log(points[p].time / said);
        unit->rows[class_of(points[p].size)].push_back({bytes, error});
      }
    }
  }
  return units;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double median_error(const std::vector<Row>& rows) {
  std::vector<double> errors;
  for (const Row& row : rows) errors.push_back(row.error);
  return median(std::move(errors));
}

// Medians that a survey found on public logs of other networks of these kinds (2026): of middle and
// of large payloads, true over said. What it says of small ones was held against a model without
// the links' latencies. One GPU a node and boxes joined by PCIe are one kind here.
std::array<double, 4> surveyed(const Path& path) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto ratios = [](double middle, double large) {
    return std::array{kNone, std::log(middle), std::log(large), std::log(large)};
  };
  if (!path.across && path.nvlink) return ratios(1.0, 1.3);
  if (path.across && path.fabric == Fabric::kEfa) return ratios(2.9, 1.2);
  if (path.across && path.fabric == Fabric::kSlingshot) return ratios(4.7, 1.5);
  if (path.across && path.fabric == Fabric::kRdma && path.nvlink) return ratios(1.2, 1.0);
  if (path.across && path.fabric == Fabric::kRdma) {
    return ratios(std::sqrt(1.6 * 1.8), std::sqrt(1.7 * 2.2));
  }
  return {kNone, kNone, kNone, kNone};
}

// A kind's figures are the mean of its sites', of the survey's, which count twice, and, once, of
// the median over all kinds: the fewer sites the nearer to that. Those of `left_out` do not count.
struct Learnt {
  const std::vector<Unit>& units;
  std::string left_out;

  double pooled(const Path& path, std::size_t c) const {
    std::vector<double> medians;
    for (const Unit& unit : units) {
      const bool counts = unit.site != left_out && unit.path.across == path.across;
      if (counts && !unit.rows[c].empty()) medians.push_back(median_error(unit.rows[c]));
    }
    return medians.empty() ? 0 : median(std::move(medians));
  }

  double bias(const Path& path, std::size_t c) const {
    double sum = pooled(path, c);
    double weight = 1;
    for (const Unit& unit : units) {
      if (unit.site == left_out || !same_kind(unit.path, path) || unit.rows[c].empty()) continue;
      sum += median_error(unit.rows[c]);
      weight += 1;
    }
    if (const double found = surveyed(path)[c]; !std::isnan(found)) {
      sum += 2 * found;
      weight += 2;
    }
    return sum / weight;
  }
};

// The rows' mean of a figure of what is left of their error.
template <typename Figure>
double mean_left(const std::vector<Row>& rows, const std::array<double, 4>& bias,
                 const Figure& figure) {
  double sum = 0;
  for (const Row& row : rows) {
    std::size_t c = 0;
    while (c < 2 && row.bytes >= kMiddles[c + 1]) ++c;
    const double place = std::clamp(
        std::log(row.bytes / kMiddles[c]) / std::log(kMiddles[c + 1] / kMiddles[c]), 0.0, 1.0);
    sum += figure(row.error - (bias[c] + place * (bias[c + 1] - bias[c])), row.bytes);
  }
  return sum / static_cast<double>(rows.size());
}

std::array<double, 4> biases(const Learnt& learnt, const Path& path) {
  std::array<double, 4> all{};
  for (std::size_t c = 0; c < 4; ++c) all[c] = learnt.bias(path, c);
  return all;
}

// What a site's rows leave of their error when nothing was learnt from it, as a mean square.
std::optional<double> left_square(const std::vector<Unit>& units, const Unit& unit, std::size_t c) {
  if (unit.rows[c].empty()) return std::nullopt;
  const auto left = biases(Learnt{units, unit.site}, unit.path);
  return mean_left(unit.rows[c], left, [](double error, double) { return error * error; });
}

// The spread around a kind's bias: of its sites, each left out, and once of all kinds.
double spread_of(const std::vector<Unit>& units, const Path& path, std::size_t c) {
  double own = 0, all = 0, count = 0, counted = 0;
  for (const Unit& unit : units) {
    const auto square = left_square(units, unit, c);
    if (!square || unit.path.across != path.across) continue;
    all += *square;
    counted += 1;
    if (!same_kind(unit.path, path)) continue;
    own += *square;
    count += 1;
  }
  return std::sqrt((own + all / counted) / (count + 1));
}

// Around the median of all kinds, for a network whose kind nobody names.
double unnamed_spread(const std::vector<Unit>& units, std::size_t c) {
  const Path unnamed;
  double sum = 0, count = 0;
  for (const Unit& unit : units) {
    if (!unit.path.across || unit.rows[c].empty()) continue;
    const Learnt learnt{units, unit.site};
    std::array<double, 4> pooled{};
    for (std::size_t k = 0; k < 4; ++k) pooled[k] = learnt.pooled(unnamed, k);
    sum += mean_left(unit.rows[c], pooled, [](double error, double) { return error * error; });
    count += 1;
  }
  return std::sqrt(sum / count);
}

TEST(Prior, IsWhatTheLogsSay) {
  const std::vector<Unit> units = units_of_logs();
  EXPECT_GE(units.size(), 20U);
  const Learnt all{units, ""};
  for (const Unit& unit : units) {
    for (std::size_t c = 0; c < 4; ++c) {
      EXPECT_NEAR(collective::nccl_prior(unit.path, kMiddles[c]).bias, all.bias(unit.path, c), 0.03)
          << unit.site << ' ' << c;
      EXPECT_NEAR(collective::nccl_prior(unit.path, kMiddles[c]).spread,
                  spread_of(units, unit.path, c), 0.03)
          << unit.site << ' ' << c;
    }
  }
  const Path unknown;
  for (std::size_t c = 0; c < 4; ++c) {
    EXPECT_NEAR(collective::nccl_prior(unknown, kMiddles[c]).bias, all.pooled(unknown, c), 0.03);
    EXPECT_NEAR(collective::nccl_prior(unknown, kMiddles[c]).spread, unnamed_spread(units, c),
                0.03);
  }
}

// On a network of which nothing was seen, the mean size of log(true / said) falls by a third.
TEST(Prior, HoldsForNetworksThatWereLeftOut) {
  const std::vector<Unit> units = units_of_logs();
  double before = 0, after = 0, inside = 0, count = 0;
  for (const Unit& unit : units) {
    const auto left = biases(Learnt{units, unit.site}, unit.path);
    for (const auto& rows : unit.rows) {
      if (rows.empty()) continue;
      const auto size = [](double error, double) { return std::fabs(error); };
      before += mean_left(rows, {}, size);
      after += mean_left(rows, left, size);
      inside += mean_left(rows, left, [&](double error, double bytes) {
        return std::fabs(error) < 1.2816 * collective::nccl_prior(unit.path, bytes).spread ? 1 : 0;
      });
      count += 1;
    }
  }
  RecordProperty("before", std::to_string(before / count));
  RecordProperty("after", std::to_string(after / count));
  RecordProperty("inside", std::to_string(inside / count));
  EXPECT_LT(after, 0.8 * before);
  EXPECT_LT(after / count, 0.42);
  EXPECT_GT(inside / count, 0.70);
  EXPECT_LT(inside / count, 0.92);
}

}  // namespace
}  // namespace syncline::calibrate
