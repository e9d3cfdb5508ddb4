// PyTorch's Kineto traces, as torch.profiler exports them: one file a rank.
#pragma once

#include "core/job/format.h"

namespace syncline::job::kineto {

extern const ImportFormat kFormat;

}  // namespace syncline::job::kineto
