// A scenario: workload, cluster, strategies and a sweep, as plain data in SI units. formats/input
// reads it from JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/job.h"
#include "core/strategy.h"
#include "formats/json/json.h"

namespace syncline {

// A sweep point: dotted path -> its value (JSON text as the user wrote it).
using SweepPoint = std::vector<std::pair<std::string, Json>>;

// A published figure for one row.
struct Published {
  std::string strategy;
  SweepPoint sweep;                  // the part of the sweep that names the row
  std::optional<double> step_time;   // seconds
  std::optional<double> throughput;  // samples per second
  std::optional<double> speedup;
  std::optional<std::int64_t> collectives;
  std::vector<std::pair<std::int64_t, double>> buckets;  // (tensors, MiB), in order
  std::optional<double> accuracy;                        // printed with the row, never predicted
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
  std::string leave_out;  // empty, "row", or a sweep path: its rows are left out in turn
  // Reason why the calibrated rows do not suffice to predict the others; empty: they do.
  std::string out_of_range;
};

struct Scenario : Job {
  std::string name;
  std::string about;
  std::vector<Strategy> strategies;
  std::string baseline;
  std::vector<std::pair<std::string, std::vector<Json>>> sweep;
  std::uint64_t seed = 1;
  std::vector<Published> published;
  Calibration calibration;
  // Jobs on other nodes of the same fabric, each with its baseline strategy. All topologies have
  // the same links.
  std::vector<Scenario> others;
};

// Returns the strategy of that name, or nullptr.
const Strategy* find_strategy(const Scenario& scenario, std::string_view name);

// Returns all points of the sweep, the first key outermost; one empty point without a sweep.
std::vector<SweepPoint> sweep_points(const Scenario& scenario);

// The points of a sweep, each made on demand: a million of them take no memory.

class Sweep {
 public:
  Sweep() = default;  // one point, without values
  explicit Sweep(const Scenario& scenario);

  // Returns the number of points, at least 1.
  std::size_t size() const;
  // Returns one combination; the first axis is outermost. Requires index < size().
  SweepPoint point(std::size_t index) const;

 private:
  std::vector<std::pair<std::string, std::vector<Json>>> axes_;
};

}  // namespace syncline
