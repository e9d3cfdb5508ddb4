// A scenario: workload, cluster, strategies and what to vary. This room is the only reader of
// scenario keys; everything is in SI units once it has passed here.
//
// A file is read in two movements. `read_document` loads the JSON and puts referenced workload and
// cluster files in place; `parse_scenario` judges it strictly and gives typed values. Sweeps and
// calibration work on the document between the two, so that any key can be varied.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/scenario/cluster.h"
#include "core/scenario/strategy.h"
#include "core/scenario/workload.h"

namespace syncline {

// The order of keys in a file is kept: rows come out in the order in which they were written.
using Json = nlohmann::ordered_json;

// Which step of a training is priced, and what the adaptive rules need to know about the training.
struct Training {
  std::optional<std::int64_t> step;  // one step; neither step nor steps: long after all ramps
  std::int64_t from = 0;             // a run of `steps` steps, beginning here
  std::optional<std::int64_t> steps;
  struct LearningRate {
    double initial = 0.1;
    double final = 0;
    double power = 1;
    bool polynomial = false;  // otherwise constant
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
};

// A document with the files it was put together from, for messages.
struct Document;

// Loads `path` and the files it refers to. Throws InputError for a missing, cut, huge or malformed
// file and for repeated keys.
Document read_document(const std::string& path);

// The same from text, for tests; `name` stands for the file in messages and relative references
// are taken from the current directory.
Document document_from_text(const std::string& name, const std::string& text);

// Sets the key at a dotted path ("cluster.inter.latency_us", "strategies.dgc.streams").
// Throws InputError when the path leads through something that does not exist.
void set_key(Document& document, const std::string& path, const Json& value);

// Judges every key and gives the typed scenario. Throws InputError.
Scenario parse_scenario(const Document& document);

// All combinations of the sweep's values, the first key outermost; one empty point without a sweep.
std::vector<SweepPoint> sweep_points(const Scenario& scenario);

// "100", "0.5", "ring": a sweep value as a person writes it.
std::string plain_text(const Json& value);

}  // namespace syncline
