// What collectives cost on a cluster, calibrated from measured tables: plain data that a cluster
// JSON carries (formats/input/scenario_json.h) and costs are read from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/units.h"
#include "core/cost/measured_table.h"
#include "core/cost/step_cost_model.h"

namespace syncline::cost {

// The time of one collective on one count of nodes and GPUs, by payload. A cost has regimes (LL,
// LL128 and Simple inside NCCL, small and large messages on TCP), so the cost model is one of

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
  double exponent = 1;          // of a sum
};

// Beyond the largest size the last slope goes on; where that is nil (only small sizes were
// measured) the time grows with the payload, which is the most it could.
Seconds size_time(const SizeCostModel& cost_model, double bytes);

// How far the cost model was off at sizes that its fit had not seen, in their neighbourhood: the
// standard deviation of log(true time / time).
struct SizeSpread {
  double bytes = 0;
  double spread = 0;
};

inline constexpr double kUnknownSpread = 0.25;

// Between the sizes listed, ascending, on straight lines over the logarithm of the size; outside of
// them the nearest. An empty list (a cluster file from before there was one, or fewer than three
// sizes) gives a wide default, kUnknownSpread.
double size_spread(const std::vector<SizeSpread>& spreads, double bytes);

// "3 segments", "envelope of 2 lines", "sum with exponent 4".
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
  std::vector<SizeSpread> spreads;  // of single sizes, honest: each was left out
  bool clean = true;                // the test's two times of each size agree
  // How much slower it ran than the cost model of the other counts of nodes, as a share of their
  // time, where that was a disturbed run: nothing else is evaluated from it. 0: it fits in.
  double slow = 0;
  std::string source;           // the file
  std::vector<Bytes> outliers;  // sizes that were left out as disturbed
};

// What a node sends between nodes with that many GPUs at work.
struct NodeRate {
  int gpus_per_node = 1;
  BytesPerSecond bandwidth = 0;
};

// Between nodes, at every count.
struct ScaleCostModel {
  GraphGuess graph;
  StepPrior prior;                   // for paths that no row showed
  std::vector<StepCostModel> steps;  // by path
  std::vector<NodeRate> rates;       // measured, by GPUs a node
  BytesPerSecond inside = 0;  // the ring inside a node, the most that NICs can use; 0: unknown
  double in_sample = 0;       // median relative error over the rows of 64 KiB and more
};

// Inside a node: latency of small payloads = base + steps * step.
struct NodeCostModel {
  Seconds base = 0;
  Seconds step = 0;
};

// What a forced tree costs on another network of such nodes: time * bandwidth / bytes.
struct TreeFactor {
  double factor = 0;
  std::string source;
};

struct MeasuredCostModel {
  std::vector<TableCostModel> tables;
  std::optional<ScaleCostModel> scale;
  NodeCostModel node;
  std::optional<TreeFactor> tree;  // for a forced tree where no table of one was measured
};

struct CostModelAnswer {
  Seconds time = 0;
  bool in_range = false;  // sizes and counts that the measurements speak for
  double spread = 0;      // standard deviation of log(true time / time); 0: unknown
};

// Returns the time that one collective takes alone. `bytes` counts as nccl-tests prints it: the
// payload of an all-reduce, all shards together for all-gather and reduce-scatter. Empty where the
// tables say nothing: one rank, no table, or a kind other than these three that was not measured
// itself. With a forced algorithm it answers for that one: from its own tables at the same counts,
// else from the cost models of its protocols, for a tree without a table by the factor of another
// network.
std::optional<CostModelAnswer> cost_model_time(const MeasuredCostModel& cost_model,
                                               collective::CollectiveKind kind, double bytes,
                                               int nodes, int gpus_per_node,
                                               ForcedAlgorithm forced = ForcedAlgorithm::kNone);

// Returns the rate between nodes with so many GPUs a node at work, relative to the cost model's
// own.
double rate_share(const ScaleCostModel& scale, int gpus_per_node);

// Returns the cost model of a path, its prior where no row showed it.
StepCostModel step_cost_model_of(const ScaleCostModel& scale, StepPath path);

// How well measurements support a cost, as a spread: the standard deviation of
// log(true time / cost). An 80 % interval is cost * exp(+-1.2816 spread).
//
// The parts are what separates the question from the nearest measured table. Each adds its square.
// Their weights were fitted to all published tables of scenarios/measured/nccl-tests, evaluated
// from every other choice of tables of the same cluster (`syncline fidelity` prints how many of the
// rows then lie inside their interval).
struct Support {
  double table = 0;         // spread of the nearest table's own cost model (size_spread)
  double sizes = 0;         // octaves beyond the measured sizes
  double nodes = 0;         // octaves from the nearest measured count of nodes
  double gpus = 0;          // octaves from the nearest measured count of GPUs a node
  bool inside = false;      // all in one node, where a switch may take over at some count of GPUs
  double paths = 0;         // how far the times of the paths that NCCL might take lie apart
  double unshown = 0;       // how likely the path is one that no row showed, 0 to 1
  bool other_kind = false;  // only another kind of collective was measured
};

// Above 0 and finite; never falls as a part grows.
double spread_of(const Support& support);

// From one network to another of the same nodes: what a forced algorithm costs, in units of what
// the network carries, stays what it is when the network changes. 2 is an ideal pipelined tree, 4.1
// the double tree of NCCL 2.4 on PCIe nodes.

// Returns the factor of a cost model's forced trees on more than two nodes (at two a tree sends
// half as much), over the sizes of their tables, evenly spread; their rate is what the other tables
// between nodes show. Empty where the cost model holds no such tree, or nothing but trees.
std::optional<double> tree_factor(const MeasuredCostModel& cost_model);

}  // namespace syncline::cost
