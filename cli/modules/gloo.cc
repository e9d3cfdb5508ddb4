// Gloo as a module: ranks on CPUs.
#include "backend_gloo/gloo_executor.h"
#include "cli/modules.h"
#include "live/backend.h"

extern "C" void syncline_module_gloo(syncline::cli::ModuleRows& rows) {
  static const syncline::live::Backend gloo{syncline::gloo_backend::make_gloo_executor};
  rows.backend = &gloo;
}
