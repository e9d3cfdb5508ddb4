// Hands in all rows of the program ahead of main, for programs of tests: their main is not ours.
#include "cli/handed_in.h"
#include "cli/modules.h"

namespace {

const bool handed_in = [] {
  syncline::cli::hand_in_all();
  syncline::cli::link_module("gloo", syncline_module_gloo);
  syncline::cli::link_module("imports", syncline_module_imports);
  syncline::cli::link_module("live", syncline_module_live);
  syncline::cli::link_module("nccl", syncline_module_nccl);
  return true;
}();

}  // namespace
