// The best layout of a whole job: every way to cut the model by tensor, context, pipeline, virtual
// stages and experts, and by samples a micro-batch where several are given, that divides the
// cluster and the model, keeps the samples of a step and fits in memory. In the order of what no
// step of it goes below (plan::least_step) they are evaluated with one strategy, until none that is
// left can be among the best.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/input/document.h"
#include "studies/explain/explanation.h"
#include "studies/rows/prediction.h"
#include "studies/tune/tuner.h"

namespace syncline::tune {

// What a job is cut into and, where it was evaluated, what that takes.
struct RankedLayout : measure::Prediction {  // `gain`: over the given layout
  Json parallel;                             // as workload.parallel has it
  std::int64_t batch = 1;
  std::int64_t micro_batches = 1;
  int replicas = 1;

  // "tp 4 sp, pp 4 x 5, dp 16, 64 x 1": sizes above 1, micro-batches and their samples.
  std::string words() const;

  measure::Bottleneck bottleneck = {};
};

struct Layouts {
  Scenario scenario;  // as it was given, after calibration
  std::string strategy;
  std::string executor;
  RankedLayout given;
  std::vector<RankedLayout> ranking;  // the best first; of equals the one that cuts less
  std::size_t layouts = 0;            // that divide the cluster
  std::size_t fitting = 0;            // of them, the model too, and in memory
  std::size_t too_large = 0;
  std::size_t evaluated = 0;
  std::string least;            // where none fits: which needs least, and how much
  std::string dialect, pasted;  // the best as a framework's settings are pasted, where asked for
  bool complete = true;
  std::vector<std::string> warnings;

  double speedup(const RankedLayout& one) const {
    return given.metrics.step_time / one.metrics.step_time;
  }
};

// The document's scenario with another layout, and its baseline alone.
Scenario with_layout(const input::Document& document, const RankedLayout& layout);

// Of the strategy that is the document's baseline. `batches`: samples a micro-batch to try beside
// the given. Throws InputError where times do not follow the layout: the model must be an
// architecture, without times of its own.
Layouts tune_layouts(const input::Document& document, const std::vector<std::int64_t>& batches,
                     const TuneOptions& options);

}  // namespace syncline::tune
