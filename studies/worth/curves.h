// Training curves: loss or accuracy of a strategy's training over its steps, from several seeds;
// and the steps to a target computed from them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "studies/tune/tuning.h"

namespace syncline::worth {

enum class Quantity { kLoss, kAccuracy };
// Returns "loss" or "accuracy", which is also the column of a file.
std::string_view word_of(Quantity quantity);

// The quantity after a number of steps, or seconds.
struct Look {
  double at = 0;
  double value = 0;
};

// One training, in order.
struct Curve {
  std::string strategy;
  std::int64_t seed = 0;
  std::vector<Look> looks;
};

// Axis of a curve.
enum class Over { kSteps, kSeconds };

// Reads the curves of a CSV file, in the order of their first rows. The head names the columns:
// strategy, step (or seconds), loss or accuracy or both, and seed if there are several; other
// columns are skipped. An empty value is skipped; nan and inf are values that reach no target.
// Throws InputError, naming file and line, for any other format, for steps below 0 or above 1e12,
// and for a step twice in one training. `name` is the file's, for messages.
std::vector<Curve> curves_of(std::string_view text, const std::string& name, Quantity quantity,
                             Over over = Over::kSteps);

// Returns the step (or second) at which the smoothed curve first falls (loss) or rises (accuracy)
// to the target; nullopt: never. Smoothed: the mean of each value with its neighbours (the last has
// one; the first stays as it is), interpolated linearly.
std::optional<double> reach_target(const Curve& curve, Quantity quantity, double target);

// Returns accuracy if a file of curves has such a column, otherwise loss.
Quantity find_quantity(std::string_view text);

// Result of all seeds of a strategy.
struct Reach {
  std::string strategy;
  std::size_t seeds = 0;
  std::size_t reached = 0;  // number that reached the target
  // Over the seeds that did: geometric mean, and standard deviation of log(another training's /
  // mean) such that kHeldDeviations to either side hold 80 % (Student's t, so that few seeds count
  // as few). No spread for a single seed.
  double at = 0;  // steps, or seconds
  std::optional<double> spread;
  // Final values of the trainings: the mean, and half of its 95 % interval by Student's t; no
  // interval for a single one.
  double end = 0;
  std::optional<double> end_half_width;

  bool always() const { return reached == seeds; }
};
// Returns one per strategy, in the order of the curves.
std::vector<Reach> reaches_of(const std::vector<Curve>& curves, Quantity quantity, double target);

// Results of training curves for a tuning's alternatives: the final values.

// Sets each alternative's outcome from the curves of its name, or else of a strategy of the
// scenario with the same training. Throws InputError if no curve belongs to any of them.
void add_outcomes(const std::vector<Curve>& curves, Quantity quantity, tune::Tuning& tuning);

}  // namespace syncline::worth
