// An objective that tells when a measurement begins and ends, for progress lines and for emulations
// that take the time that a machine would.
#pragma once

#include <functional>
#include <utility>

#include "core/tune/live_objective.h"

namespace syncline::tune {

struct MeasurementWatch {
  std::function<void(const Candidate&, const Evaluation&)> begins = [](const Candidate&,
                                                                       const Evaluation&) {};
  std::function<void(const Evaluation&, const Measurement&)> ends = [](const Evaluation&,
                                                                       const Measurement&) {};
};

class WatchedObjective final : public LiveObjective {
 public:
  // `machine` must outlive it.
  WatchedObjective(LiveObjective& machine, MeasurementWatch watch)
      : machine_(machine), watch_(std::move(watch)) {}

  std::string source() const override { return machine_.source(); }
  Measurement measure(const Candidate& candidate, const Evaluation& evaluation) override {
    watch_.begins(candidate, evaluation);
    const Measurement measured = machine_.measure(candidate, evaluation);
    watch_.ends(evaluation, measured);
    return measured;
  }

 private:
  LiveObjective& machine_;
  MeasurementWatch watch_;
};

}  // namespace syncline::tune
