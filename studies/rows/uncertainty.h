// Uncertainty of a predicted step time. Each uncertain input has a spread, the standard deviation
// of log(true / assumed), and affects the step times of all rows. A row's sensitivity is its step
// evaluated with that input at either end of its 80 % interval. Inputs are independent, so squares
// add up. Rows share them: the ratio of two rows is more certain if both move alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/metrics.h"
#include "formats/scenario/scenario.h"
#include "studies/rows/interval.h"

namespace syncline::measure {

enum class Uncertainty {
  kLatency,      // time of small messages on this network
  kBandwidth,    // time of large messages
  kComputation,  // forward, backward and update
  kDevice,       // encoding, decoding and copies into buckets
  kOverlap,      // slowdown of computation during a collective
  kFramework,    // costs of parallel training other than its collectives
};
inline constexpr std::size_t kUncertainties = 6;
inline constexpr std::array<Uncertainty, kUncertainties> kAllUncertainties{
    Uncertainty::kLatency, Uncertainty::kBandwidth, Uncertainty::kComputation,
    Uncertainty::kDevice,  Uncertainty::kOverlap,   Uncertainty::kFramework};
// Returns "the time of small messages on the network", ...
std::string_view words_of(Uncertainty uncertainty);

// Share of cases that an interval holds, and the number of standard deviations to either side for
// it.
inline constexpr double kHeld = 0.8;
inline constexpr double kHeldDeviations = 1.2815515655446004;

// A kind of collective that NCCL runs. If none was measured, the errors of guesses differ between
// kinds, so rows of different kinds share only part of their uncertainty.
enum class GuessedKind {
  kInside,       // in a node, an all-reduce
  kInsideHalf,   // in a node, half of one
  kOneEach,      // across nodes, one GPU of each
  kOneEachHalf,  // the same, half of one
  kAcross,       // across nodes, several GPUs of each
  kAcrossHalf,
  kTreeOfTwo,  // across two nodes: a tree passes the ports half as often as a ring
};
inline constexpr std::size_t kGuessedKinds = 7;

// log(step time / predicted step time) with one input at the slower, or the faster, end of its
// interval. `own`: standard deviation of the error that no other row shares, including collisions
// of hashed flows.
struct Sensitivity {
  std::array<double, kUncertainties> slower{};
  std::array<double, kUncertainties> faster{};
  double own = 0;
  double hashed = 0;  // part of `own` from collisions
  // Number of the code base of the kernels if their rate is a guess; 0: unknown. Times of one code
  // base predict little of another's.
  std::int64_t kernels = 0;
  // Logarithm of the GPUs' time of computation per sample if it is a guess. Ratios of rows that
  // compute differently err by a share of the difference.
  std::optional<double> work = {};
  // State that hooks on the host shard: 1 the update, 2 gradients too, 3 parameters too; 0: none.
  // Each has the hooks of the one before.
  int hooks = 0;
  // Effect of the bandwidth error that only one kind of collective has, at its faster and its
  // slower end.
  std::array<std::array<double, 2>, kGuessedKinds> ways{};

  bool operator==(const Sensitivity&) const = default;
};

// Returns the standard deviation of a ratio's own error, as a logarithm: rows of one scenario err
// alike, except for a share of the gain and of the difference in computation.
double own_of_ratio(double ratio, const Sensitivity& numerator, const Sensitivity& denominator);
// Returns the interval of a step time.
Interval interval_of(Seconds time, const Sensitivity& sensitivity);
// Returns the interval of the ratio of two step times.
Interval ratio_interval(double ratio, const Sensitivity& numerator, const Sensitivity& denominator);
// Returns the chance that the first of two step times is the shorter one.
double chance_shorter(Seconds first, const Sensitivity& first_sensitivity, Seconds second,
                      const Sensitivity& second_sensitivity);
// Returns the same from the interval of second / first.
double chance_shorter(Seconds first, Seconds second, const Interval& ratio);
// Returns the uncertainty that widens an interval most, and its share of the squares.
std::pair<Uncertainty, double> widest(const Sensitivity& sensitivity);

// Returns true if measured times of the computation are those of the baseline, and one of the two
// holds shards of the parameters: its copies and hooks are in such times.
bool measured_under_another_scheme(const Scenario& scenario, const Strategy& strategy);

struct Draw;  // draws.h

// Spreads of the errors that a calibration of the scenario left, per fitted part. nullopt: not
// fitted.
struct FitErrors {
  std::optional<double> computation;
  std::optional<double> network;
  std::optional<double> framework;  // as a share of the step
};

// An end of an input's interval.
struct InputEnd {
  Uncertainty uncertainty;
  bool slower;
};

// Computes the sensitivity of rows of one scenario. Each costs about eleven runs of the model, plus
// two per kind of collective without measurements, plus four on a fabric of hashed flows.
class Uncertainties {
 public:
  // Stores the scenario. Requires that it outlives this.
  explicit Uncertainties(const Scenario& scenario, const FitErrors& fit_errors = {});
  ~Uncertainties();
  Uncertainties(const Uncertainties&) = delete;
  Uncertainties& operator=(const Uncertainties&) = delete;

  // Returns the sensitivity of an evaluated strategy, whichever executor evaluated it.
  Sensitivity sensitivity(const Strategy& strategy);
  // Returns the same if `known` is that of other uncertainties, which differ in these inputs alone:
  // the others are not evaluated again.
  Sensitivity sensitivity(const Strategy& strategy, const Sensitivity& known,
                          const std::vector<Uncertainty>& changed);
  // Returns the interval of the ratio of two rows of this scenario. If the ends of one input after
  // the other leave open which is faster, both are evaluated at joint draws of all inputs
  // (draws.h).
  struct Compared {
    const Strategy& strategy;
    const Sensitivity& sensitivity;
  };
  Interval ratio(double ratio, const Compared& numerator, const Compared& denominator);
  // Returns the model's step times, each with one input at an end of its interval.
  std::vector<Seconds> shifted_steps(const Strategy& strategy, const std::vector<InputEnd>& ends);
  Seconds shifted_step(const Strategy& strategy, Uncertainty uncertainty, bool slower) {
    return shifted_steps(strategy, {{uncertainty, slower}}).front();
  }

 private:
  class Shifted;
  struct Plans;  // of a strategy; all shifts of inputs share them
  Plans plans_of(const Strategy& strategy) const;
  Seconds step(const Plans& plans, Shifted& shifted) const;
  Interval framework_share(const Strategy& strategy, Seconds step) const;
  const std::vector<double>& draws(const Strategy& strategy);
  std::unique_ptr<Shifted> inputs_at(const Draw& draw);
  Shifted& shift_input(Uncertainty uncertainty, bool slower);
  double collisions(const Plans& plans, Seconds plain);
  bool guesses() const;
  std::vector<GuessedKind> ways_of(const Plans& plans) const;
  Shifted& shift_input(GuessedKind way, bool slower);

  const Scenario& scenario_;
  FitErrors fit_errors_;
  std::shared_ptr<collective::CostCache> cache_;  // costs on the given network
  std::unique_ptr<Shifted> as_given_;
  std::array<std::array<std::unique_ptr<Shifted>, 2>, kUncertainties> shifted_;
  std::array<std::array<std::unique_ptr<Shifted>, 2>, kGuessedKinds> ways_;
  std::vector<std::unique_ptr<Shifted>> rehashed_;  // filled on first use
  std::vector<std::unique_ptr<Shifted>> drawn_;     // likewise, by draw
  // log(step time / predicted step time) at each draw, of strategies that were compared: by their
  // names and predicted step times.
  std::deque<std::pair<std::pair<std::string, Seconds>, std::vector<double>>> known_draws_;
};

}  // namespace syncline::measure
