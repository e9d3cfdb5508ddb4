// How far prices may be off where nothing was measured, by the payload.
//
// Found on the clean tables of scenarios/measured/nccl-tests that leave the choice to NCCL (at most
// some 33 sizes of each, evenly spread): the table's cluster was written from data sheets (ports of
// NVLink, PCIe and NICs at their rated speed; 2 us a message inside a node over NVLink, 5 over
// PCIe; 5 us between nodes, 15 on EFA, 25 on TCP; 10 us a collective) and predicted by NCCL's model
// on those links (NcclLaw), and by the links with a ring. Networks count alike:
//
//                       up to 64 KiB    64 KiB to 4 MiB    above
//   NCCL's model, rows           431                267      590
//     median log(true/price)   +0.15               +0.7    +0.55    (e^0.7: twice as long)
//     spread                     0.6                1.1      0.8
//   links, rows                  399                228      764
//     median log(true/price)    -0.2               +0.7     +0.5
//     spread                     0.7                1.0      0.65
//
// The spread is the one whose 80 % interval around the prediction holds 80 % of the rows. It
// contains the bias: NCCL's constants are InfiniBand's, and middle sizes take longer on the others.
// tests/calibrate/assumed_spread_test.cc works NCCL's lines out again.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

namespace syncline::collective {

// Between the middles of the three classes of sizes on a straight line over the logarithm, so that
// nothing jumps. `bytes` above 0.
inline double between_classes(const std::array<double, 3>& values, double bytes) {
  constexpr std::array<double, 3> kOctave = {13, 19, 26};  // 8 KiB, 512 KiB, 64 MiB
  const double octave = std::clamp(std::log2(bytes), kOctave.front(), kOctave.back());
  const std::size_t low = octave < kOctave[1] ? 0 : 1;
  const double share = (octave - kOctave[low]) / (kOctave[low + 1] - kOctave[low]);
  return values[low] + share * (values[low + 1] - values[low]);
}

// Standard deviation of log(true time / price) for a payload of `bytes` (above 0). `nccl`: priced
// by NCCL's own model, otherwise by the links.
inline double assumed_spread(bool nccl, double bytes) {
  constexpr std::array<double, 3> kNccl = {0.6, 1.1, 0.8};
  constexpr std::array<double, 3> kLinks = {0.7, 1.0, 0.65};
  return between_classes(nccl ? kNccl : kLinks, bytes);
}

// Its median, the second line of the table: how much longer the truth takes as a rule.
inline double assumed_bias(bool nccl, double bytes) {
  constexpr std::array<double, 3> kNccl = {0.15, 0.7, 0.55};
  constexpr std::array<double, 3> kLinks = {-0.2, 0.7, 0.5};
  return between_classes(nccl ? kNccl : kLinks, bytes);
}

// Either end of an 80 % interval of log(true time / price): the bias, and around it what is left of
// the spread. `deviations`: 1.2816, or its negative for the faster end.
inline double assumed_end(bool nccl, double bytes, double deviations) {
  const double spread = assumed_spread(nccl, bytes);
  const double bias = assumed_bias(nccl, bytes);
  return bias + deviations * std::sqrt(spread * spread - bias * bias);
}

}  // namespace syncline::collective
