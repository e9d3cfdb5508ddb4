#include "cli/backends.h"

#include "backend_gloo/gloo_executor.h"
#include "backend_nccl/nccl_executor.h"
#include "core/error.h"

namespace syncline {

LiveExecutorFactory backend_named(const std::string& name) {
  if (name == "gloo") return make_gloo_executor;
  if (name == "nccl") {
    return [](const Workload& workload, ControlChannel& channel) {
      return make_nccl_executor(workload, channel);
    };
  }
  throw InputError("--backend: found '" + name + "', expected gloo or nccl");
}

}  // namespace syncline
