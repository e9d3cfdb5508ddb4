// How sure a predicted step time is. Every input may be off: each such uncertainty has a spread,
// the standard deviation of log(true / assumed), and moves the step times of all rows at once. A
// row's sensitivity says by how much: its step evaluated again with that input at either end of its
// 80 % interval. Uncertain inputs are independent of each other, so their effects add up as
// squares; rows share them, so the ratio of two rows is surer than either where both move alike.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/metrics.h"
#include "formats/scenario/scenario.h"
#include "studies/rows/interval.h"

namespace syncline::measure {

enum class Uncertainty {
  kLatency,      // what small messages take on this network
  kBandwidth,    // what large ones take
  kComputation,  // forward, backward and update
  kDevice,       // encoding, decoding and copies into buckets
  kOverlap,      // how much computation slows down beside a collective
  kFramework,    // what training in parallel costs beyond its collectives
};
inline constexpr std::size_t kUncertainties = 6;
inline constexpr std::array<Uncertainty, kUncertainties> kAllUncertainties{
    Uncertainty::kLatency, Uncertainty::kBandwidth, Uncertainty::kComputation,
    Uncertainty::kDevice,  Uncertainty::kOverlap,   Uncertainty::kFramework};
// "the network's latency", ...
std::string_view words_of(Uncertainty uncertainty);

// The share of cases that an interval is to hold, and the number of standard deviations to either
// side that holds it.
inline constexpr double kHeld = 0.8;
inline constexpr double kHeldDeviations = 1.2815515655446004;

// A kind of collective that NCCL runs. Where nobody measured any, a guess about one kind is not as
// wrong as that about another, so rows that use different kinds do not share all of their doubt.
enum class GuessedKind {
  kInside,       // a node, an all-reduce
  kInsideHalf,   // a node, half of one
  kOneEach,      // across nodes, one GPU of each
  kOneEachHalf,  // likewise
  kAcross,       // nodes, several GPUs of each
  kAcrossHalf,
  kTreeOfTwo,  // nodes: a tree there passes the ports half as often as a ring
};
inline constexpr std::size_t kGuessedKinds = 7;

// log(step time / predicted step time) with one input at the slower, or the faster, end of its
// interval; and the standard deviation of what is this row's own, collisions of hashed flows too.
struct Sensitivity {
  std::array<double, kUncertainties> slower{};
  std::array<double, kUncertainties> faster{};
  double own = 0;
  // What large messages of one kind take that the others do not: the faster end, the slower one.
  std::array<std::array<double, 2>, kGuessedKinds> ways{};

  bool operator==(const Sensitivity&) const = default;
};

// Of a step time.
Interval interval_of(Seconds time, const Sensitivity& sensitivity);
// Of the ratio of two step times, the numerator's and the denominator's sensitivity given.
Interval ratio_interval(double ratio, const Sensitivity& numerator, const Sensitivity& denominator);
// The chance that the first of two step times is the shorter one.
double chance_shorter(Seconds first, const Sensitivity& first_sensitivity, Seconds second,
                      const Sensitivity& second_sensitivity);
// What widens an interval most; its share of the squares.
std::pair<Uncertainty, double> widest(const Sensitivity& sensitivity);

// What a calibration of the scenario itself pinned down, and the spread of the errors that it left.
// Nothing: not fitted.
struct FitErrors {
  std::optional<double> computation;
  std::optional<double> network;
  std::optional<double> framework;  // as a share of the step
};

// Works out the sensitivity of rows of one scenario. Each costs about eleven runs of the model, two
// more for each kind of collective that nobody measured, on a fabric of hashed flows four more.
class Uncertainties {
 public:
  // The scenario must outlive this.
  explicit Uncertainties(const Scenario& scenario, const FitErrors& fit_errors = {});
  ~Uncertainties();
  Uncertainties(const Uncertainties&) = delete;
  Uncertainties& operator=(const Uncertainties&) = delete;

  // Of a strategy that was evaluated, whichever executor did it.
  Sensitivity sensitivity(const Strategy& strategy);
  // The step time by the model with one input at the slower or the faster end of its interval.
  Seconds step_with(const Strategy& strategy, Uncertainty uncertainty, bool slower);

 private:
  class Shifted;
  Seconds step(const Strategy& strategy, Shifted& shifted);
  Interval framework_share(Seconds step) const;
  Shifted& shifted(Uncertainty uncertainty, bool slower);
  double collisions(const Strategy& strategy, Seconds plain);
  bool guesses() const;
  std::vector<GuessedKind> ways_of(const Strategy& strategy);
  Shifted& shifted(GuessedKind way, bool slower);

  const Scenario& scenario_;
  FitErrors fit_errors_;
  std::shared_ptr<collective::CostCache> cache_;  // of the network as given
  std::unique_ptr<Shifted> as_given_;
  std::array<std::array<std::unique_ptr<Shifted>, 2>, kUncertainties> shifted_;
  std::array<std::array<std::unique_ptr<Shifted>, 2>, kGuessedKinds> ways_;
  std::vector<std::unique_ptr<Shifted>> rehashed_;  // once they were asked for
};

}  // namespace syncline::measure
