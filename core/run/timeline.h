// When each operation began and ended: what every executor returns, predicted or measured.
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace syncline::run {

// One operation on one rank.
struct Span {
  int period = 0;
  plan::OpId op = 0;
  int rank = 0;
  Seconds begin = 0;
  Seconds end = 0;
};

struct Timeline {
  // A few representative ranks, not thousands; rank 0 is always among them. In order of `begin`
  // on each stream.
  std::vector<Span> spans;
  // When all ranks had finished each period.
  std::vector<Seconds> period_ends;
};

}  // namespace syncline::run
