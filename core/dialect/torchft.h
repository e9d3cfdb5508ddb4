// torchft's LocalSGD and DiLoCo (torchft/local_sgd.py) by the arguments of their constructors:
// sync_every, fragment_sync_delay, fragment_update_alpha, should_quantize, use_bucketization and
// bucket_cap_mb, with num_fragments for the modules in model_fragments, outer_optimizer for
// torch.optim.SGD's lr, momentum and nesterov, and group_world_size, the ranks of a replica group.
// diloco: MaxText's keys for the same (src/maxtext/trainers/diloco, configs/types.py).
#pragma once

#include "core/dialect/dialect.h"

namespace syncline::dialect {

Dialect torchft_dialect();
Dialect diloco_dialect();

}  // namespace syncline::dialect
