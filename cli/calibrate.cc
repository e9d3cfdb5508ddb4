#include "cli/calibrate.h"

#include <memory>

#include "cli/files.h"
#include "cli/verbs.h"
#include "core/error.h"

namespace syncline::cli {
namespace {

int run(const CalibrateOptions& options) {
  expect_writable({options.out, options.svg, options.html});
  if (!options.live.empty()) return calibrate_live(options);
  if (!options.steps.empty()) return calibrate_from_steps(options);
  if (options.logs.empty() && !options.kernels.empty()) return calibrate_from_kernels(options);
  if (options.logs.empty()) {
    throw InputError(
        "logs: expected at least one, --live gloo to measure the links, --kernels with what "
        "make gpu-check wrote, or --steps with a scenario whose steps were measured");
  }
  if (!options.cluster.empty()) {
    throw InputError("--cluster: the logs make the cluster; expected only with --kernels alone");
  }
  return calibrate_from_logs(options);
}

}  // namespace

VerbAction add_calibrate(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  options->name = "calibrated";
  auto* verb = app.add_subcommand("calibrate",
                                  "Turn logs of nccl-tests, or of NCCL's Inspector in a job, into "
                                  "a cluster description, and say "
                                  "how far to trust it");
  add_calibrate_options(*verb, *options);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
