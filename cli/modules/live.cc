// Ranks as a module: measures jobs, networks and predictions on machines.
#include "cli/modules/live.h"
#include "cli/modules.h"

extern "C" void syncline_module_live(syncline::cli::ModuleRows& rows) {
  using namespace syncline::cli;
  rows.verbs = {{"calibrate", add_calibrate},
                {"capture", add_capture},
                {"compare", add_compare},
                {"lab", add_lab},
                {"validate", add_validate}};
  rows.tune_live = tune_live;
}
