// Scenarios that nobody wrote: one fragment for each capability, merged into a small base. The net
// over pairs of them (net.h) holds every two together against the laws (laws.h). A new capability
// adds a fragment.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "formats/json/json.h"

namespace syncline::pairs {

// Nodes and GPUs a node.
struct Shape {
  int nodes = 1;
  int gpus = 1;

  int ranks() const { return nodes * gpus; }
};

// Of 1, 2, 8 and 24 ranks.
const std::vector<Shape>& shapes();

struct Fragment {
  std::string name;
  // The knob whose value it is: two values of one knob have no scenario. Empty: a knob of its own.
  std::string knob;
  // Members are merged into those of the scenario (RFC 7386); "strategy" into the one strategy,
  // "tensors" into those whose names hold the key, "operators" into the workload's, where it has
  // any. $nodes, $gpus, $ranks, $inside (ranks of a group), $across (groups) and $source stand for
  // the shape's numbers and the project's folder.
  std::string patch;
};

// In the order in which they are merged.
const std::vector<Fragment>& fragments();

// By their places in fragments(); rising.
using Chosen = std::vector<std::size_t>;

// Whether two of them are values of one knob.
bool exclude(const Chosen& chosen);

Json scenario_of(const Shape& shape, const Chosen& chosen);

// "fp16 + zero 3 on 3 x 8".
std::string name_of(const Shape& shape, const Chosen& chosen);

}  // namespace syncline::pairs
