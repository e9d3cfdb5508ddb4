#include "backend_gloo/gloo_executor.h"
#include "core/base/error.h"

namespace syncline::gloo_backend {

std::unique_ptr<live::LiveExecutor> make_gloo_executor(const Workload&, live::ControlChannel&) {
  throw MachineError("--backend gloo: this program was built without Gloo (libgloo-dev)");
}

}  // namespace syncline::gloo_backend
