#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/files.h"
#include "cli/ranks.h"
#include "cli/verbs.h"
#include "core/calibrate/calibration.h"
#include "core/calibrate/kernel_costs.h"
#include "core/calibrate/log_files.h"
#include "core/compress/codec.h"
#include "core/cost/tiers.h"
#include "core/error.h"
#include "core/input/cluster_json.h"
#include "core/input/document.h"
#include "core/input/law_json.h"
#include "core/json/reader.h"
#include "core/json/text.h"
#include "live/link_calibration.h"
#include "reports/calibration.h"
#include "reports/kernel_costs.h"
#include "reports/markdown.h"
#include "reports/table.h"
#include "reports/validation_report.h"

namespace syncline {
namespace {

struct CalibrateOptions {
  std::vector<std::string> logs;
  std::vector<std::string> against;
  std::string out;
  std::string svg;
  std::string name;
  std::string format = "text";
  std::string algorithm = "nccl";
  std::string factor_from;
  std::string workload;
  std::string trace;
  double throughput = 0;
  std::string live;
  RanksOptions ranks;
  int gpus_per_node = 1;
  std::string codec = "dgc";
  std::string kernels;
  std::string cluster;
};

std::string printed(const LogCalibration& calibration, const std::string& format) {
  if (format == "json") return calibration_json(calibration);
  if (format == "markdown") return calibration_markdown(calibration);
  return calibration_text(calibration);
}

// The factor of the forced trees in a cluster that was calibrated with one.
TreeFactor factor_from(const std::string& file) {
  Json cluster = read_json_file(file);
  if (!cluster.is_object() || !cluster.contains("calibration")) {
    throw InputError(file + ": expected a cluster with a calibration, as calibrate -o writes it");
  }
  const MeasuredLaw law = read_law(Reader(cluster.at("calibration"), file, "calibration"));
  const auto factor = tree_factor(law);
  if (!factor && law.tree) return *law.tree;
  if (!factor) {
    throw InputError(file +
                     ": calibration: expected a table of a forced tree on three nodes or more "
                     "(LOG:tree) beside one of the same network that is not a tree");
  }
  return {*factor, file};
}

std::optional<DeviceFit> device_of(const CalibrateOptions& options) {
  if (options.workload.empty()) {
    if (options.trace.empty() && options.throughput == 0) return std::nullopt;
    throw InputError(
        "--trace and --throughput: expected --workload too, whose FLOPs were computed");
  }
  const Json workload = read_json_file(options.workload);
  if (!options.trace.empty()) {
    return device_from_trace(workload, options.workload, read_trace(options.trace), options.trace);
  }
  if (options.throughput == 0) {
    throw InputError("--workload: expected --trace or --throughput, measured with it");
  }
  return device_from_throughput(workload, options.workload, options.throughput);
}

// Ranks measure their own links.
int run_live(const CalibrateOptions& options) {
  const auto& ranks = options.ranks;
  const std::string key = "calibrate " + std::to_string(options.gpus_per_node) + options.codec;
  return with_ranks(ranks, key, [&](Meeting& meeting) {
    const int inside = options.gpus_per_node;
    if (meeting.ranks() < 2 || meeting.ranks() % inside != 0) {
      throw InputError("--gpus-per-node: found " + std::to_string(inside) +
                       ", expected a divisor of the " + std::to_string(meeting.ranks()) +
                       " ranks, of which there must be two at least");
    }
    const Cluster shape = unmeasured_cluster(options.name, meeting.ranks() / inside, inside);
    const bool first = meeting.rank() == 0;
    if (first) std::cerr << "measuring the links of " << meeting.ranks() << " ranks" << std::endl;
    LinkCalibrationSettings settings;
    settings.codec = find_codec(options.codec);
    const auto calibration = calibrate_links(meeting, backend_named(options.live), shape, settings);
    meeting.barrier();
    if (!first) return 0;
    Json json = cluster_json(shape, 6);
    set_measured_links(calibration, json);
    if (!options.out.empty()) write_file(options.out, json.dump(2) + "\n");
    Validation validation;
    validation.cluster = options.name;
    validation.ranks = meeting.ranks();
    validation.samples = calibration.samples;
    if (options.format == "json") {
      std::cout << json.dump(2) << "\n";
    } else {
      std::cout << (options.format == "markdown" ? links_markdown(validation)
                                                 : links_text(validation));
    }
    return 0;
  });
}

// Without logs: a cluster that is there gets the device that was measured.
int run_kernels(const CalibrateOptions& options) {
  if (options.cluster.empty()) {
    throw InputError("--kernels: expected logs, or --cluster with the cluster to write it into");
  }
  const KernelCosts costs = kernel_costs(read_json_file(options.kernels), options.kernels);
  const Json cluster = with_kernel_costs(read_json_file(options.cluster), options.cluster, costs);
  if (!options.out.empty()) write_file(options.out, cluster.dump(2) + "\n");
  if (options.format == "json") {
    std::cout << kernel_costs_json(costs);
  } else {
    const Page page = kernel_costs_page(costs);
    std::cout << (options.format == "markdown" ? markdown_page(page) : text_page(page));
  }
  return 0;
}

int run(const CalibrateOptions& options) {
  if (!options.live.empty()) return run_live(options);
  if (options.logs.empty() && !options.kernels.empty()) return run_kernels(options);
  if (options.logs.empty()) {
    throw InputError(
        "logs: expected at least one, or --live gloo to measure the links, or --kernels with what "
        "make gpu-check wrote");
  }
  if (!options.cluster.empty()) {
    throw InputError("--cluster: the logs make the cluster; expected only with --kernels alone");
  }
  const auto tables = tables_in(options.logs, options.algorithm);
  const auto against = tables_in(options.against, options.algorithm);
  std::optional<TreeFactor> tree;
  if (!options.factor_from.empty()) tree = factor_from(options.factor_from);
  const auto device = device_of(options);
  LogCalibration calibration = calibration_of(tables, against, options.name, tree);
  if (device) set_device(calibration, *device);
  if (!options.kernels.empty()) {
    const KernelCosts costs = kernel_costs(read_json_file(options.kernels), options.kernels);
    calibration.cluster = with_kernel_costs(calibration.cluster, options.name, costs);
  }
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
                   "the log does not say; FILE:ring, FILE:tree: what NCCL was forced to");
  verb->add_option("--against", options->against,
                   "logs that are not used, to be predicted at their own counts");
  verb->add_option("-o,--out", options->out, "file for the cluster (JSON)");
  verb->add_option("--svg", options->svg, "file for a plot of measured and fitted times");
  verb->add_option("--name", options->name, "name of the cluster")->capture_default_str();
  verb->add_option("--algorithm", options->algorithm,
                   "what NCCL was forced to in logs that do not say it themselves (FILE:ring)")
      ->check(CLI::IsMember({"nccl", "ring", "tree"}))
      ->capture_default_str();
  verb->add_option("--factor-from", options->factor_from,
                   "cluster of another network, calibrated with a forced tree (LOG:tree): what a "
                   "tree costs in units of what the network carries is taken from there");
  auto* trace = verb->add_option("--trace", options->trace,
                                 "CSV (wait_us,bytes) of a measured backward pass of --workload on "
                                 "one GPU: the device's rate");
  verb->add_option("--throughput", options->throughput,
                   "samples a second of --workload on one GPU: the same without a trace")
      ->check(CLI::Range(1e-9, 1e12))
      ->excludes(trace);
  verb->add_option("--workload", options->workload,
                   "workload (JSON) that --trace or --throughput were measured with");
  verb->add_option("--kernels", options->kernels,
                   "what make gpu-check wrote on one of the cluster's GPUs (JSON): the device's "
                   "memory rate, launch and gap");
  verb->add_option("--cluster", options->cluster,
                   "cluster (JSON) whose device --kernels updates, where no logs make one");
  verb->add_option("--format", options->format, "what is printed")
      ->check(CLI::IsMember({"text", "markdown", "json"}))
      ->capture_default_str();
  auto* live = verb->add_option("--live", options->live,
                                "instead of logs: ranks measure their own links, with this backend")
                   ->check(CLI::IsMember({"gloo", "nccl"}));
  for (const char* other : {"logs", "--against", "--svg", "--algorithm", "--factor-from", "--trace",
                            "--throughput", "--workload", "--kernels", "--cluster"}) {
    live->excludes(verb->get_option(other));
  }
  add_ranks_options(*verb, options->ranks);
  for (const char* own : {"--ranks", "--timeout", "--meet"}) verb->get_option(own)->needs(live);
  verb->add_option("--gpus-per-node", options->gpus_per_node,
                   "ranks that share a node, where links inside and between nodes differ")
      ->check(CLI::Range(1, 1024))
      ->needs(live)
      ->capture_default_str();
  verb->add_option("--codec", options->codec, "whose encoding is timed too")
      ->check(CLI::IsMember({"dgc", "fp16", "bf16"}))
      ->needs(live)
      ->capture_default_str();
  return [options] { return run(*options); };
}

}  // namespace syncline
