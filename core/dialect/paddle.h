// Paddle: the DistributedStrategy of Fleet's static graph (as of 2021, the time of its documents),
// and the reducer of its dygraph DataParallel, each a dialect of its own.
#pragma once

#include "core/dialect/dialect.h"

namespace syncline::dialect {

Dialect paddle_dialect();          // paddle.cc
Dialect paddle_dygraph_dialect();  // paddle_dygraph.cc

}  // namespace syncline::dialect
