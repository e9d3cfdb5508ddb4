// What a live search measures: the step time of a candidate on some machine. The backends that move
// real gradients stand behind this seam; so does an emulated machine whose truth is known, by which
// the searches are graded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "core/tune/candidate.h"
#include "core/units.h"

namespace syncline::tune {

// One evaluation of a search. `number` counts from 0 over the whole search, resumed or not: an
// objective that draws at random draws by seed and number, so that a resumed search sees what an
// uninterrupted one would have seen.
struct Evaluation {
  int number = 0;
  int steps = 50;
  std::uint64_t seed = 1;
};

struct Measurement {
  Seconds step_time = 0;       // mean over the steps
  Seconds standard_error = 0;  // of that mean, from the spread of the steps
};

// Mean and standard error of single steps. Requires at least one; of one step the error is 0.
Measurement summary(const std::vector<Seconds>& steps);

class LiveObjective {
 public:
  virtual ~LiveObjective() = default;
  // Where the figures come from: "measured with gloo on 2 nodes", "emulated, 2 % noise".
  virtual std::string source() const = 0;
  // Runs `evaluation.steps` training steps with the candidate. Throws MachineError.
  virtual Measurement measure(const Candidate& candidate, const Evaluation& evaluation) = 0;
};

// A machine whose true step time is a function, with normal noise on each step of `noise` times the
// truth. A pure function of candidate and evaluation.
class EmulatedObjective final : public LiveObjective {
 public:
  using Truth = std::function<Seconds(const Candidate&)>;
  EmulatedObjective(Truth truth, double noise);
  std::string source() const override;
  Measurement measure(const Candidate& candidate, const Evaluation& evaluation) override;

 private:
  Truth truth_;
  double noise_;
};

// An objective that tells when a measurement begins and ends, for progress lines and for emulations
// that take the time that a machine would.

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
