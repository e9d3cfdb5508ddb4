// How sure a predicted step time is. Every input may be off: each such doubt has a spread, the
// standard deviation of log(true / assumed), and moves the step times of all rows at once. A row's
// sway says by how much: its step priced again with that input at either end of its 80 % interval.
// Doubts are independent of each other, so their effects add up as squares; rows share them, so the
// ratio of two rows is surer than either where both move alike.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/measure/price_strategy.h"
#include "core/scenario/scenario.h"

namespace syncline::measure {

enum class Doubt {
  kLatency,      // what small messages take on this network
  kBandwidth,    // what large ones take
  kComputation,  // forward, backward and update
  kDevice,       // encoding, decoding and copies into buckets
  kOverlap,      // how much computation slows down beside a collective
  kFramework,    // what training in parallel costs beyond its collectives
};
inline constexpr std::size_t kDoubts = 6;
inline constexpr std::array<Doubt, kDoubts> kAllDoubts{Doubt::kLatency,     Doubt::kBandwidth,
                                                       Doubt::kComputation, Doubt::kDevice,
                                                       Doubt::kOverlap,     Doubt::kFramework};
// "the network's latency", ...
std::string_view words_of(Doubt doubt);

// The share of cases that an interval is to hold, and the number of standard deviations to either
// side that holds it.
inline constexpr double kHeld = 0.8;
inline constexpr double kHeldDeviations = 1.2815515655446004;

// log(step time / predicted step time) with one input at the slower, or the faster, end of its
// interval; and the standard deviation of what is this row's own.
struct Sway {
  std::array<double, kDoubts> slower{};
  std::array<double, kDoubts> faster{};
  double own = 0;

  bool operator==(const Sway&) const = default;
};

struct Interval {
  double low = 0;
  double high = 0;
};

// Of a step time.
Interval interval_of(Seconds time, const Sway& sway);
// Of the ratio of two step times, the numerator's and the denominator's sway given.
Interval ratio_interval(double ratio, const Sway& numerator, const Sway& denominator);
// The chance that the first of two step times is the shorter one.
double chance_shorter(Seconds first, const Sway& first_sway, Seconds second,
                      const Sway& second_sway);
// What widens an interval most; its share of the squares.
std::pair<Doubt, double> widest(const Sway& sway);

// What a calibration of the scenario itself pinned down, and the spread of the errors that it left.
// Nothing: not fitted.
struct Pinned {
  std::optional<double> computation;
  std::optional<double> network;
  std::optional<double> framework;  // as a share of the step
};

// Works out the sway of rows of one scenario. Each costs about eleven runs of the model.
class Doubts {
 public:
  // The scenario must outlive this.
  explicit Doubts(const Scenario& scenario, const Pinned& pinned = {});
  ~Doubts();
  Doubts(const Doubts&) = delete;
  Doubts& operator=(const Doubts&) = delete;

  // Of a strategy that was priced, whichever executor did it.
  Sway sway(const Strategy& strategy);
  // The step time by the model with one input at the slower or the faster end of its interval.
  Seconds step_with(const Strategy& strategy, Doubt doubt, bool slower);

 private:
  class Shifted;
  Seconds step(const Strategy& strategy, Shifted& shifted);
  Interval framework_share(Seconds step) const;
  Shifted& shifted(Doubt doubt, bool slower);

  const Scenario& scenario_;
  Pinned pinned_;
  std::shared_ptr<collective::PriceBook> book_;  // of the network as given
  std::unique_ptr<Shifted> as_given_;
  std::array<std::array<std::unique_ptr<Shifted>, 2>, kDoubts> shifted_;
};

}  // namespace syncline::measure
