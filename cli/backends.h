// The live backends by name.
#pragma once

#include <string>

#include "live/live_executor.h"

namespace syncline {

// "gloo" or "nccl". Throws InputError for another name.
LiveExecutorFactory backend_named(const std::string& name);

}  // namespace syncline
