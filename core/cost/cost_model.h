// Costs of collectives on a cluster, calibrated from measured tables: plain data that a cluster
// JSON carries (formats/input/scenario_json.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/cost/measured_table.h"
#include "core/cost/step_cost_model.h"

namespace syncline::cost {

// One straight part of a collective's time over the payload. A cost has several regimes: LL, LL128
// and Simple inside NCCL, small and large messages on TCP.
struct SizeLine {
  double from = 0;  // bytes that the line was fitted to, both ends included
  double to = 0;
  Seconds latency = 0;
  double seconds_per_byte = 0;
};

struct SizeCostModel {
  enum class Form { kSegments, kEnvelope, kSum };
  Form form = Form::kSegments;
  std::vector<SizeLine> lines;  // at least one; segments by ascending size
  double exponent = 1;          // for kSum
};

// Returns seconds. Beyond the largest size the last slope continues; if that is zero (only small
// sizes were measured), the time grows with the payload, which is an upper limit.
Seconds size_time(const SizeCostModel& cost_model, double bytes);

// Error of the cost model near sizes that its fit had not seen: the standard deviation of log(true
// time / time).
struct SizeSpread {
  double bytes = 0;
  double spread = 0;
};

inline constexpr double kUnknownSpread = 0.25;

// Returns the spread by linear interpolation over the logarithm of the size, outside of the
// ascending list that of the nearest. An empty list (an old cluster file, or fewer than three
// sizes) gives a wide default, kUnknownSpread.
double size_spread(const std::vector<SizeSpread>& spreads, double bytes);

// Describes the form: "3 segments", "envelope of 2 lines", "sum with exponent 4".
std::string describe(const SizeCostModel& cost_model);

// One measured table.
struct TableCostModel {
  collective::CollectiveKind kind = collective::CollectiveKind::kAllReduce;
  ForcedAlgorithm forced = ForcedAlgorithm::kNone;
  int nodes = 1;
  int gpus_per_node = 1;
  SizeCostModel cost_model;
  double min_bytes = 0;  // of the fitted sizes
  double max_bytes = 0;
  int rows = 0;
  double in_sample = 0;             // mean relative errors, see scale_fit.h
  double left_out = -1;             // negative: too few sizes
  std::vector<SizeSpread> spreads;  // of single sizes, each predicted without itself
  bool clean = true;                // the test's two times of each size agree
  // Relative slowdown against the cost model of other counts of nodes, if the run was disturbed: no
  // other count is evaluated from it. 0: undisturbed.
  double slow = 0;
  std::string source;           // the file
  std::vector<Bytes> outliers;  // sizes left out as disturbed
};

// Rate between nodes of a node with this many GPUs in use.
struct NodeRate {
  int gpus_per_node = 1;
  BytesPerSecond bandwidth = 0;
};

// Cost model between nodes, for all counts.
struct ScaleCostModel {
  GraphGuess graph;
  StepPrior prior;                   // for paths without a row
  std::vector<StepCostModel> steps;  // by path
  std::vector<NodeRate> rates;       // measured, by GPUs per node
  BytesPerSecond inside = 0;  // rate of the ring inside a node, which limits its NICs; 0: unknown
  double in_sample = 0;       // median relative error over the rows of 64 KiB and more, if any
};

// Inside a node: latency of small payloads = base + steps * step.
struct NodeCostModel {
  Seconds base = 0;
  Seconds step = 0;
};

// Cost of a forced tree, from another network of the same nodes: time * bandwidth / bytes, which
// hardly changes with the network.
struct TreeFactor {
  double factor = 0;
  std::string source;
};

struct MeasuredCostModel {
  std::vector<TableCostModel> tables;
  std::optional<ScaleCostModel> scale;
  NodeCostModel node;
  std::optional<TreeFactor> tree;  // for a forced tree without a measured table
};

struct CostModelAnswer {
  Seconds time = 0;
  bool in_range = false;  // within the measured sizes and counts
  double spread = 0;      // standard deviation of log(true time / time); 0: unknown
};

// Returns the time of one collective alone. `bytes` counts as nccl-tests prints it: the payload of
// an all-reduce, all shards together for all-gather and reduce-scatter. Empty without data: one
// rank, no table, or a kind other than these three that was not measured itself. A forced algorithm
// uses its own tables at the same counts, else the cost models of its protocols; a tree without a
// table uses the factor of another network.
std::optional<CostModelAnswer> cost_model_time(const MeasuredCostModel& cost_model,
                                               collective::CollectiveKind kind, double bytes,
                                               int nodes, int gpus_per_node,
                                               ForcedAlgorithm forced = ForcedAlgorithm::kNone);

// Returns the rate between nodes with this many GPUs per node in use / the cost model's own.
double rate_share(const ScaleCostModel& scale, int gpus_per_node);

// Returns the cost model of a path, or its prior without a row.
StepCostModel step_cost_model_of(const ScaleCostModel& scale, StepPath path);

// Support of a cost by measurements; spread_of gives the standard deviation of
// log(true time / cost). An 80 % interval is cost * exp(+-1.2816 spread).
//
// The parts are distances of the question from the nearest measured table. Each adds its square.
// Their weights were fitted to all published tables of scenarios/measured/nccl-tests, evaluated
// from every other choice of tables of the same cluster (`syncline fidelity` prints the share of
// rows inside their interval).
struct Support {
  double table = 0;         // spread of the nearest table's own cost model (size_spread)
  double sizes = 0;         // octaves beyond the measured sizes
  double nodes = 0;         // octaves from the nearest measured count of nodes
  double gpus = 0;          // octaves from the nearest measured GPUs per node
  bool inside = false;      // all in one node; with more GPUs, its switch may sum (NVLS)
  double paths = 0;         // distance between the times of NCCL's possible paths
  double unshown = 0;       // probability of a path without a row, 0 to 1
  bool other_kind = false;  // only another kind of collective was measured
};

// Returns the spread: positive, finite, never falling as a part grows.
double spread_of(const Support& support);

// Returns the median TreeFactor of a cost model's forced trees on more than two nodes (on two a
// tree sends half as much): 2 for an ideal pipelined tree, 4.1 for the double tree of NCCL 2.4 on
// PCIe nodes. It is taken over evenly spread sizes of their tables, at the rate of the other tables
// between nodes. Empty if the cost model has no such tree, or only trees.
std::optional<double> tree_factor(const MeasuredCostModel& cost_model);

}  // namespace syncline::cost
