// The parts of Paddle's DistributedStrategy that change what is exchanged and when: DGC
// (meta_optimizers/dgc_optimizer.py, operators/dgc_op.h) and LocalSGD, fixed and adaptive
// (meta_optimizers/localsgd_optimizer.py).
#pragma once

#include <string>
#include <vector>

#include "core/dialect/dialect.h"
#include "core/json/reader.h"

namespace syncline::dialect {

struct PaddleTraining {
  Compression compression;  // its codec is empty without DGC
  LocalSgd local_sgd;
};

// Reads dgc, localsgd, adaptive_localsgd and their configs. With one worker none of them applies.
PaddleTraining read_paddle_training(Reader& config, const Workload& workload,
                                    const Cluster& cluster, std::vector<std::string>& notes);

}  // namespace syncline::dialect
