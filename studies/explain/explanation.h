// What strategies do on their cluster, what holds them up and what would gain most: what `explain`
// says.
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
#include "studies/rows/company.h"
#include "studies/rows/uncertainty.h"

namespace syncline::measure {

// What a step is bound by. `explain` and `tune` both ask here, so that they answer alike.

// A step's time by cause. The communication that nothing hides is shared out as start-up and
// transfer are in the collectives' own time.
struct Bottleneck {
  Seconds step = 0;
  Seconds compute = 0;        // the model's work on a rank of mean speed, without the next three
  Seconds tensor = 0;         // collectives of tensor parallelism that nothing hides
  Seconds context = 0;        // likewise
  Seconds expert = 0;         // likewise
  Seconds bubble = 0;         // waiting for other stages of the pipeline
  Seconds sends = 0;          // what messages between stages make that longer
  Seconds stragglers = 0;     // waiting for slower ranks
  Seconds overhead = 0;       // what data-parallel execution costs the host
  Seconds handling = 0;       // copying and encoding gradients, the host's delays
  Seconds start_up = 0;       // exposed latency and overhead of collectives
  Seconds transfer = 0;       // exposed time of their bytes
  double start_up_share = 0;  // of the collectives' own time, hidden or not

  Seconds communication() const { return start_up + transfer; }
  // What a job that is cut beside data parallelism pays for that, in words.
  std::vector<std::pair<std::string_view, Seconds>> cuts() const {
    return {{"tensor parallelism", tensor},
            {"context parallelism", context},
            {"expert parallelism", expert},
            {"bubble", bubble},
            {"sends", sends}};
  }
  // "computation" where less than a tenth of the step is anything else, else the greatest of
  // "stragglers", "handling gradients", "latency" or "bandwidth", "bubble", "tensor parallelism",
  // "context parallelism" and "expert parallelism".
  std::string_view what() const;
};

// Of what was evaluated in this scenario, whose costs are in the cache. Of a pipeline the stage
// that computes most; what sums of gradients and messages cost it is what the step takes without
// them.
Bottleneck bottleneck_of(const Evaluated& evaluated, const Scenario& scenario,
                         collective::CostCache& cache);

// Changes that gain less are not worth a sentence.
inline constexpr double kLeastAdvicePercent = 0.5;

struct Explained {
  Strategy strategy;
  Evaluated evaluated;
  Interval interval;                     // 80 % of its step time
  std::optional<Bottleneck> bottleneck;  // of several ranks: one exchanges nothing
  std::optional<Bottleneck> doubled;     // of a whole job: with twice the nodes
  std::optional<HotLink> hot_link;       // on a fabric that holds collectives up
  std::vector<SwitchLoad> links;         // on a fabric
  std::vector<Advice> advice;            // the best few, best first
  bool advised = false;                  // one rank without operators has nothing to be advised
};

struct Explanation {
  Scenario scenario;
  std::vector<Explained> strategies;
  std::vector<std::string> warnings;
  std::string shortage;  // of memory (fitting.h); empty: all fit
};

// Evaluates the document's strategies of these names by the model, each on the share that other
// jobs leave of the fabric's links. Ignores its sweep. `fit_errors`: of the calibration in the
// document.
Explanation explained(const input::Document& document, Scenario scenario,
                      const std::vector<std::string>& names, const FitErrors& fit_errors);

}  // namespace syncline::measure
