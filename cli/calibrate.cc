#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/files.h"
#include "cli/verbs.h"
#include "core/calibrate/calibration.h"
#include "core/calibrate/log_files.h"
#include "reports/calibration.h"

namespace syncline {
namespace {

struct CalibrateOptions {
  std::vector<std::string> logs;
  std::vector<std::string> against;
  std::string out;
  std::string svg;
  std::string name;
  std::string format = "text";
};

std::string printed(const LogCalibration& calibration, const std::string& format) {
  if (format == "json") return calibration_json(calibration);
  if (format == "markdown") return calibration_markdown(calibration);
  return calibration_text(calibration);
}

int run(const CalibrateOptions& options) {
  const auto tables = tables_in(options.logs);
  const auto against = tables_in(options.against);
  const LogCalibration calibration = calibration_of(tables, against, options.name);
  if (!options.out.empty()) write_file(options.out, calibration.cluster.dump(2) + "\n");
  if (!options.svg.empty()) write_file(options.svg, calibration_svg(calibration));
  std::cout << printed(calibration, options.format);
  return 0;
}

}  // namespace

VerbAction add_calibrate(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  options->name = "calibrated";
  auto* verb = app.add_subcommand(
      "calibrate",
      "Turn logs of nccl-tests into a cluster description, and say how far to trust it");
  verb->add_option("logs", options->logs,
                   "logs of one cluster, text or JSON (-J); FILE@10x2: 10 nodes of 2 GPUs, where "
                   "the log does not say")
      ->required();
  verb->add_option("--against", options->against,
                   "logs that are not used, to be predicted at their own counts");
  verb->add_option("-o,--out", options->out, "file for the cluster (JSON)");
  verb->add_option("--svg", options->svg, "file for a plot of measured and fitted times");
  verb->add_option("--name", options->name, "name of the cluster")->capture_default_str();
  verb->add_option("--format", options->format, "what is printed")
      ->check(CLI::IsMember({"text", "markdown", "json"}))
      ->capture_default_str();
  return [options] { return run(*options); };
}

}  // namespace syncline
