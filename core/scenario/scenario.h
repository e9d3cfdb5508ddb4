// A scenario: workload, cluster, strategies and what to vary, as plain data in SI units. core/input
// reads it from JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json/json.h"
#include "core/scenario/cluster.h"
#include "core/scenario/strategy.h"
#include "core/scenario/workload.h"

namespace syncline {

// Which step of a training is evaluated, and what the adaptive rules need to know about the
// training.
struct Training {
  std::optional<std::int64_t> step;  // one step; neither step nor steps: long after all ramps
  std::int64_t from = 0;             // a run of `steps` steps, beginning here
  std::optional<std::int64_t> steps;
  struct LearningRate {
    double initial = 0.1;
    double final = 0;
    double power = 1;  // of a polynomial decay
    enum class Decay { kConstant, kPolynomial, kCosine } decay = Decay::kConstant;
    std::int64_t warmup = 0;            // steps in which it rises to initial
    std::optional<std::int64_t> steps;  // at which it is final; the run's if left out
  } learning_rate;
  std::vector<std::pair<double, double>> loss;  // (step, value), linear in between
};

// A sweep point: dotted path -> the value that it takes (JSON text as the user wrote it).
using SweepPoint = std::vector<std::pair<std::string, Json>>;

// A figure somebody published for one row.
struct Published {
  std::string strategy;
  SweepPoint sweep;                  // the part of the sweep that names the row
  std::optional<double> step_time;   // seconds
  std::optional<double> throughput;  // samples per second
  std::optional<double> speedup;
  std::optional<std::int64_t> collectives;
  std::vector<std::pair<std::int64_t, double>> buckets;  // (tensors, MiB), in order
  std::optional<double> accuracy;                        // printed beside the row, never predicted
  bool calibrated = false;  // the row was used to fit; otherwise it is predicted
  std::string source;
  std::string note;
};

// Scenario keys fitted to the published rows that are marked as calibrated.
struct Calibration {
  struct Parameter {
    std::string path;
    double start = 0, min = 0, max = 0;
  };
  std::vector<Parameter> parameters;
  // Sweep paths: every combination of their values is fitted on its own. Empty: one fit for all.
  std::vector<std::string> each;
  std::string leave_out;  // empty, "row", or a sweep path: what is left out in turn
  // Why the rows to predict lie beyond what the calibrated ones can tell; empty where they do not.
  std::string out_of_range;
};

// How the simulation is run.
struct Simulation {
  enum class Grain { kMerged, kStep } grain = Grain::kMerged;
  bool fold = true;            // simulate one of many interchangeable links
  std::optional<int> periods;  // plan periods unrolled; default: enough for the spread at hand
  std::optional<int> warmup;   // of these, dropped
};

struct Scenario {
  std::string name;
  std::string about;
  Workload workload;
  Cluster cluster;
  std::vector<Strategy> strategies;
  std::string baseline;
  std::vector<std::pair<std::string, std::vector<Json>>> sweep;
  Training training;
  std::uint64_t seed = 1;
  std::vector<Published> published;
  Calibration calibration;
  Simulation simulation;
  // Jobs on other nodes of the same fabric, each with its baseline strategy. All topologies have
  // the same links.
  std::vector<Scenario> others;
};

// The cluster as the ranks see it that sum a dense gradient: strategies are set for these.
Cluster exchanging(const Scenario& scenario);

// The strategy of that name, or nullptr.
const Strategy* find_strategy(const Scenario& scenario, std::string_view name);

// All combinations of the sweep's values, the first key outermost; one empty point without a sweep.
std::vector<SweepPoint> sweep_points(const Scenario& scenario);

// The points of a sweep, each made when it is asked for: a million of them take no memory.

class Sweep {
 public:
  Sweep() = default;  // one point, without values
  explicit Sweep(const Scenario& scenario);

  // At least 1.
  std::size_t size() const;
  // All combinations of the axes' values, the first axis outermost. Requires index < size().
  SweepPoint point(std::size_t index) const;

 private:
  std::vector<std::pair<std::string, std::vector<Json>>> axes_;
};

}  // namespace syncline
