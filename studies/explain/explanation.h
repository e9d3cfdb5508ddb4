// Answer of `explain`: each strategy's step on its cluster, its bottleneck, and the changes that
// would gain most.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/metrics.h"
#include "formats/input/document.h"
#include "formats/scenario/scenario.h"
#include "studies/explain/advice.h"
#include "studies/rows/fabric_jobs.h"
#include "studies/rows/uncertainty.h"

namespace syncline::measure {

// Bottleneck of a step; `explain` and `tune` both compute it here, so that they agree.

// A step's time by cause. Exposed communication divides into start-up and transfer in the
// proportion of the collectives' own time.
struct Bottleneck {
  Seconds step = 0;
  Seconds compute = 0;        // the model's work on a rank of mean speed, without the next three
  Seconds tensor = 0;         // exposed collectives of tensor parallelism
  Seconds context = 0;        // exposed collectives of context parallelism
  Seconds expert = 0;         // exposed collectives of expert parallelism
  Seconds bubble = 0;         // waiting for other stages of the pipeline
  Seconds sends = 0;          // extra bubble due to messages between stages
  Seconds stragglers = 0;     // waiting for slower ranks
  Seconds overhead = 0;       // the host's cost of data-parallel execution
  Seconds comm_overhead = 0;  // copying and encoding gradients, the host's delays
  Seconds start_up = 0;       // exposed latency and overhead of collectives
  Seconds transfer = 0;       // exposed time of their bytes
  double start_up_share = 0;  // share of start-up in the collectives' own time, hidden or not

  Seconds communication() const { return start_up + transfer; }
  // Returns the costs of other kinds of parallelism, with their names.
  std::vector<std::pair<std::string_view, Seconds>> cuts() const {
    return {{"tensor parallelism", tensor},
            {"context parallelism", context},
            {"expert parallelism", expert},
            {"bubble", bubble},
            {"sends", sends}};
  }
  // Returns "computation" if all else takes less than a tenth of the step. Otherwise returns the
  // greatest of "stragglers", "handling gradients", "latency" or "bandwidth", "bubble", "tensor
  // parallelism", "context parallelism" and "expert parallelism".
  std::string_view what() const;
};

// Returns the bottleneck of an evaluation, for a pipeline that of the stage that computes most.
// Gradient sums and messages cost the step's time minus its time without them. `cache`: costs in
// this scenario.
Bottleneck bottleneck_of(const Evaluated& evaluated, const Scenario& scenario,
                         collective::CostCache& cache);

// Changes that gain less are not reported.
inline constexpr double kMinAdvicePercent = 0.5;

struct Explained {
  Strategy strategy;
  Evaluated evaluated;
  Interval interval;                     // 80 % interval of its step time
  std::optional<Bottleneck> bottleneck;  // for several ranks: one exchanges nothing
  std::optional<Bottleneck> doubled;     // for a whole job: with twice the nodes
  std::optional<HotLink> hot_link;       // on a fabric that slows collectives down
  std::vector<SwitchLoad> links;         // on a fabric
  std::vector<Advice> advice;            // the best few, best first
  bool advised = false;                  // false: one rank without operators gets no advice
};

struct Explanation {
  Scenario scenario;
  std::vector<Explained> strategies;
  std::vector<std::string> warnings;
  std::string shortage;  // lack of memory (fitting.h); empty: all fit
};

// Evaluates the document's strategies of these names by the model, each on the share that other
// jobs leave of the fabric's links. Ignores its sweep. `fit_errors`: those of its calibration.
Explanation explain_strategies(const input::Document& document, Scenario scenario,
                               const std::vector<std::string>& names, const FitErrors& fit_errors);

}  // namespace syncline::measure
