#include <nlohmann/json.hpp>

#include "cli/calibrate.h"
#include "cli/files.h"
#include "cli/output.h"
#include "core/calibrate/calibration.h"
#include "core/calibrate/kernel_costs.h"
#include "core/calibrate/log_files.h"
#include "core/cost/tiers.h"
#include "core/error.h"
#include "core/input/law_json.h"
#include "core/json/reader.h"
#include "core/json/text.h"
#include "reports/calibration.h"
#include "reports/kernel_costs.h"

namespace syncline::cli {
namespace {

// The factor of the forced trees in a cluster that was calibrated with one.
cost::TreeFactor factor_from(const std::string& file) {
  Json cluster = read_json_file(file);
  if (!cluster.is_object() || !cluster.contains("calibration")) {
    throw InputError(file + ": expected a cluster with a calibration, as calibrate -o writes it");
  }
  const cost::MeasuredLaw law =
      input::read_law(Reader(cluster.at("calibration"), file, "calibration"));
  const auto factor = cost::tree_factor(law);
  if (!factor && law.tree) return *law.tree;
  if (!factor) {
    throw InputError(file +
                     ": calibration: expected a table of a forced tree on three nodes or more "
                     "(LOG:tree) beside one of the same network that is not a tree");
  }
  return {*factor, file};
}

std::optional<calibrate::DeviceFit> device_of(const CalibrateOptions& options) {
  if (options.workload.empty()) {
    if (options.trace.empty() && options.throughput == 0) return std::nullopt;
    throw InputError(
        "--trace and --throughput: expected --workload too, whose FLOPs were computed");
  }
  const Json workload = read_json_file(options.workload);
  if (!options.trace.empty()) {
    return calibrate::device_from_trace(workload, options.workload,
                                        calibrate::read_trace(options.trace), options.trace);
  }
  if (options.throughput == 0) {
    throw InputError("--workload: expected --trace or --throughput, measured with it");
  }
  return calibrate::device_from_throughput(workload, options.workload, options.throughput);
}

}  // namespace

int calibrate_from_logs(const CalibrateOptions& options) {
  const auto tables = calibrate::tables_in(options.logs, options.algorithm);
  const auto against = calibrate::tables_in(options.against, options.algorithm);
  std::optional<cost::TreeFactor> tree;
  if (!options.factor_from.empty()) tree = factor_from(options.factor_from);
  const auto device = device_of(options);
  calibrate::LogCalibration calibration =
      calibrate::calibration_of(tables, against, options.name, tree);
  if (options.line_rate > 0) {
    calibrate::set_line_rate(calibration, options.line_rate * kGigabitPerSecond);
  }
  if (device) calibrate::set_device(calibration, *device);
  if (!options.kernels.empty()) {
    const calibrate::KernelCosts costs =
        calibrate::kernel_costs(read_json_file(options.kernels), options.kernels);
    calibration.cluster = calibrate::with_kernel_costs(calibration.cluster, options.name, costs);
  }
  const SideFile out{options.out, [&] { return calibration.cluster.dump(2) + "\n"; }};
  const SideFile svg{options.svg, [&] { return reports::calibration_svg(calibration); }};
  const reports::Answer answer = reports::answer_of(calibration);
  answer_with({out, svg, html_file(options.html, answer)}, [&] { print(answer, options.format); });
  return 0;
}

int calibrate_from_kernels(const CalibrateOptions& options) {
  if (options.cluster.empty()) {
    throw InputError("--kernels: expected logs, or --cluster with the cluster to write it into");
  }
  const calibrate::KernelCosts costs =
      calibrate::kernel_costs(read_json_file(options.kernels), options.kernels);
  const Json cluster =
      calibrate::with_kernel_costs(read_json_file(options.cluster), options.cluster, costs);
  const reports::Answer answer = reports::answer_of(costs);
  answer_with(
      {{options.out, [&] { return cluster.dump(2) + "\n"; }}, html_file(options.html, answer)},
      [&] { print(answer, options.format); });
  return 0;
}

}  // namespace syncline::cli
