// Finds the best layout of a whole job: cuts by tensor, context, pipeline, virtual stages and
// experts, and samples per micro-batch. Layouts must divide the cluster and the model, keep the
// samples of a step and fit in memory. They are evaluated with one strategy by ascending lower
// bound of the step (plan::least_step), until no other can be among the best.
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

// Choices of the search. The samples of a step and the strategy are kept.
struct LayoutChoice {
  bool layouts = false;               // how the model is cut
  bool micro_batches = false;         // into any that divide a rank's samples
  bool checkpointing = false;         // none, selective, full
  std::vector<std::int64_t> batches;  // samples per micro-batch to try in addition to the given one

  bool any() const { return layouts || micro_batches || checkpointing; }
};

// A layout of a job, with its prediction if it was evaluated.
struct RankedLayout : measure::Prediction {  // `gain`: over the given layout
  Json parallel;                             // value of workload.parallel
  std::int64_t batch = 1;
  std::int64_t micro_batches = 1;
  int replicas = 1;
  std::string recompute = {};  // activation_checkpointing; empty: as given, and no part of a name

  bool same_job(const RankedLayout& other) const {
    return parallel == other.parallel && batch == other.batch && recompute == other.recompute;
  }
  // Returns "tp=4 sp, pp=4 vp=5, dp=16, 64 micro-batches of 1": sizes above 1, and the samples of a
  // micro-batch.
  std::string words() const;
  std::string cut_words() const;  // without micro-batches
  Json keys() const;              // of the scenario's workload

  measure::Bottleneck bottleneck = {};
  double tokens = 0;  // a second and GPU; 0: not known, as in the one below
  double mfu = 0;     // share of the device's rated products
};

struct Layouts {
  Scenario scenario;  // as given, after calibration
  std::string strategy;
  std::string executor;
  RankedLayout given;
  std::vector<RankedLayout> ranking;  // best first; among equals the one that cuts less
  // The given job, the best, and the best's changes each alone; without a step time: it needs the
  // others. Empty: the given one is the best.
  std::vector<measure::Advice> changes;
  std::size_t layouts = 0;  // layouts that divide the cluster
  std::size_t fitting = 0;  // layouts that also divide the model and fit in memory
  std::size_t too_large = 0;
  std::size_t evaluated = 0;
  std::string least;            // if none fits: the one with the least memory, and its size
  std::string dialect, pasted;  // best layout as a framework's settings, if requested
  bool complete = true;
  std::vector<std::string> warnings;

  double speedup(const RankedLayout& one) const {
    return given.metrics.step_time / one.metrics.step_time;
  }
};

// Returns the document's scenario with another layout and only its baseline.
Scenario with_layout(const input::Document& document, const RankedLayout& layout);

// Evaluates layouts with the document's baseline. Throws InputError if times do not depend on the
// layout: the model must be an architecture without its own times.
Layouts tune_layouts(const input::Document& document, const LayoutChoice& choice,
                     const TuneOptions& options);

}  // namespace syncline::tune
