// The answer to a scenario: one row a strategy and sweep point, ready to be printed.
// studies/study fills it, reports/ prints it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/executor.h"
#include "core/metrics.h"
#include "core/plan.h"
#include "formats/scenario/scenario.h"
#include "studies/rows/prediction.h"

namespace syncline::measure {

// Jobs that share a fabric: a row's own first, then the others in their order.
struct FabricJobs {
  struct Job {
    std::string name;
    Seconds alone = 0;     // a step without the others
    Seconds together = 0;  // NaN: the simulation was too short for one
  };
  std::vector<Job> jobs;
  std::vector<std::pair<std::string, double>> hot;  // links with the share that all take of each
};

struct Row : Prediction {  // the baseline strategy is that of the same sweep point
  std::string strategy;
  std::string executor;
  SweepPoint sweep;
  double rounding_error = 0;  // of one exchange (rounding.h); 0: none, or not known
  struct Rate {
    std::int64_t ranks = 0;  // no gap after it: rows travel as they lie in memory
    double tokens = 0;       // a second and rank; 0: not known, as in those below
    double mfu = 0;  // time of the products that a rank needs at its device's rated rate, a step
    double efficiency =
        0;  // samples a second and rank, over those of the fewest nodes in the sweep
  } rate;
  std::vector<std::pair<std::int64_t, double>> buckets;  // (tensors, MiB), in order of exchange
  FabricJobs fabric_jobs;  // of jobs on the same fabric; empty: there are none
  std::optional<Published> published;
  // Error against the published figure (step time, else throughput, else speedup), in percent:
  // (predicted / published - 1) * 100.
  std::optional<double> error_percent;
  // The same error when this row was left out of the calibration.
  std::optional<double> left_out_error_percent;
};

// A parameter that was fitted, for the record.
struct Fitted {
  std::string path;
  double value = 0;
  SweepPoint at;  // the part of the sweep that it holds for; empty: everywhere
};

// One refit with something left out, and its prediction of that.
struct Split {
  std::string left_out;  // "cluster.inter.bandwidth_gbps = 100", or the strategy of the row
  std::vector<Fitted> parameters;
  std::vector<Row> rows;  // the rows that were left out
};

// One strategy's plan and timeline at the first sweep point, for the trace.
// A link of the fabric, and how long each operation of a plan works on it.
struct LinkWork {
  std::string name;
  std::vector<Seconds> of_op;
};

struct Traced {
  std::string strategy;
  plan::Plan plan;
  run::Timeline timeline;
  std::vector<LinkWork> links = {};  // the hottest of a fabric
};

// The bandwidth of the ports between nodes that a calibration found by measured steps.
struct NetworkFit {
  double given = 0;    // Gbit/s a port, as the scenario has it
  double carried = 0;  // as the steps say
  Fabric fabric = Fabric::kUnknown;
  int nics = 1;  // ports of a node
};

struct Report {
  std::string scenario;
  std::string about;
  std::string workload;
  std::string cluster;
  std::string executor;
  std::string baseline;
  std::uint64_t seed = 1;
  // Strategies that train differently, not only faster: sparse gradients, rarer averaging.
  std::vector<std::string> inexact;
  std::vector<std::string> outer;    // of them, those that average with an outer step
  std::vector<std::string> sources;  // where workload, cluster and published figures come from
  std::vector<Row> rows;
  std::vector<Fitted> fitted;  // empty without calibration
  FitErrors fit_errors;        // uncertainty that the calibration left
  std::optional<NetworkFit> network;
  std::vector<Split> splits;
  std::string shortage;               // of memory (memory.h); empty if all strategies fit
  std::vector<std::string> warnings;  // of settings that are allowed and rarely meant (warnings.h)
  std::string out_of_range;           // why the forecasts leave the calibrated range, if they do
  Workload traced_workload;           // of `traced`
  std::vector<Traced> traced;
  bool complete = true;  // false: interrupted, the rows so far
};

// Returns true for a baseline with only its own speedup published: always 1, no prediction.
bool is_trivial(const Row& row, const Report& report);

}  // namespace syncline::measure
