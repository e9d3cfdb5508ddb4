// Training curves: what a strategy's training had reached after how many steps, from several seeds;
// and from them how many steps a strategy takes to a target.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "studies/tune/tuning.h"

namespace syncline::worth {

enum class Quantity { kLoss, kAccuracy };
// "loss", "accuracy": also the column of a file.
std::string_view word_of(Quantity quantity);

// The quantity after so many steps, or seconds.
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

// What a curve runs over.
enum class Over { kSteps, kSeconds };

// The curves of a CSV file, in the order in which their first rows stand there. Its first line
// names the columns: strategy and step (or, over seconds, seconds), loss or accuracy or both, and
// seed where there are several; others are passed over. An empty value is no look; nan and inf are
// looks that reach nothing. Throws InputError naming file and line for anything else that is no
// such table, for steps below 0 or above 1e12, and for a step twice in one training. `name` is the
// file's, for messages.
std::vector<Curve> curves_of(std::string_view text, const std::string& name, Quantity quantity,
                             Over over = Over::kSteps);

// The step (or second) at which the smoothed curve first reaches the target: the mean of each look
// with its neighbours (the last has one; the first stands by itself), on straight lines in between.
// A loss reaches what it falls to, an accuracy what it rises to. Nothing: it never does.
std::optional<double> reached_at(const Curve& curve, Quantity quantity, double target);

// Accuracy where a file of curves has such a column, otherwise loss.
Quantity quantity_in(std::string_view text);

// What all seeds of a strategy say together.
struct Reach {
  std::string strategy;
  std::size_t seeds = 0;
  std::size_t reached = 0;  // of them
  // Of those that did: the geometric mean, and the standard deviation of log(another training's
  // / mean) that holds 80 % of them in kHeldDeviations to either side (Student's t, so that
  // few seeds count as few). No spread of a single one.
  double at = 0;  // steps, or seconds
  std::optional<double> spread;
  // What the trainings came to at the end of their curves: the mean, and half of its 95 % interval
  // by Student's t; none of a single one.
  double end = 0;
  std::optional<double> end_half_width;

  bool always() const { return reached == seeds; }
};
// One a strategy, in the order of the curves.
std::vector<Reach> reaches_of(const std::vector<Curve>& curves, Quantity quantity, double target);

// What training curves know of a tuning's alternatives: where their trainings ended.

// Gives each alternative the outcome of the curves of its own name, or else of a strategy of the
// scenario that trains alike. Throws InputError where no curve belongs to any of them.
void add_outcomes(const std::vector<Curve>& curves, Quantity quantity, tune::Tuning& tuning);

}  // namespace syncline::worth
