// How well measurements support a price, as a spread: the standard deviation of
// log(true time / price). An 80 % interval is price * exp(+-1.2816 spread).
//
// The parts are what separates the question from the nearest measured table. Each adds its square.
// Their weights were fitted to all published tables of scenarios/measured/nccl-tests, priced from
// every other choice of tables of the same cluster (`syncline fidelity` prints how many of the rows
// then lie inside their interval).
#pragma once

namespace syncline::cost {

struct Support {
  double table = 0;         // spread of the nearest table's own law (size_spread)
  double sizes = 0;         // octaves beyond the measured sizes
  double nodes = 0;         // octaves from the nearest measured count of nodes
  double gpus = 0;          // octaves from the nearest measured count of GPUs a node
  bool inside = false;      // all in one node, where a switch may take over at some count of GPUs
  double paths = 0;         // how far the times of the paths that NCCL might take lie apart
  double unshown = 0;       // how likely the path is one that no row showed, 0 to 1
  bool other_kind = false;  // only another kind of collective was measured
};

// Above 0 and finite; never falls as a part grows.
double spread_of(const Support& support);

}  // namespace syncline::cost
