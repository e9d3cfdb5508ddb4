// The nodes of a Chakra trace -> the steps of one rank.
#pragma once

#include <string>
#include <vector>

#include "core/job/chakra/nodes.h"
#include "core/job/observed.h"

namespace syncline::job::chakra {

struct Steps {
  std::vector<Step> list;
  bool timed = false;          // compute nodes have durations
  bool forward_known = false;  // they say which of them are the forward pass
  bool collectives_timed = false;
  int point_to_point = 0;  // sends and receives, left out
  int odd = 0;             // collectives of other kinds, or of no whole number of floats
};

// Throws InputError as walk() does.
Steps steps_of(const std::string& name, const Trace& trace);

}  // namespace syncline::job::chakra
