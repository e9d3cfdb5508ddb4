// What strategies do on their cluster, what holds them up and what would gain most: what `explain`
// says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/input/document.h"
#include "core/measure/advice.h"
#include "core/measure/bottleneck.h"
#include "core/measure/evaluate_strategy.h"
#include "core/measure/hot_link.h"
#include "core/measure/uncertainty.h"
#include "core/scenario/scenario.h"

namespace syncline::measure {

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
};

// The strategies of these names, which the document has, evaluated by the model, each on what other
// jobs leave of the fabric's links. Its sweep is ignored. `pinned`: how well a calibration's values
// are known, which stand in the document.
Explanation explained(const input::Document& document, Scenario scenario,
                      const std::vector<std::string>& names, const FitErrors& fit_errors);

}  // namespace syncline::measure
