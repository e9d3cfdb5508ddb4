#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/executors.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/ranks.h"
#include "cli/verbs.h"
#include "core/calibrate/calibration.h"
#include "core/calibrate/device_fit.h"
#include "core/calibrate/log_files.h"
#include "core/calibrate/step_fit.h"
#include "core/compress/codec.h"
#include "core/cost/cost_model.h"
#include "core/error.h"
#include "core/input/document.h"
#include "core/input/scenario_json.h"
#include "core/json/reader.h"
#include "core/json/text.h"
#include "live/link_calibration.h"
#include "reports/calibration.h"
#include "reports/validation_report.h"

namespace syncline::cli {
namespace {

struct CalibrateOptions {
  std::vector<std::string> logs;
  std::vector<std::string> against;
  std::string out;
  std::string svg;
  std::string name = "calibrated";
  Output output;
  double line_rate = 0;  // Gbit/s; 0: not given
  std::string node;
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
  std::string steps;
  std::vector<std::string> set;
  std::vector<std::string> rows;
};

// The factor of the forced trees in a cluster that was calibrated with one.
cost::TreeFactor factor_from(const std::string& file) {
  Json cluster = read_json_file(file);
  if (!cluster.is_object() || !cluster.contains("calibration")) {
    throw InputError(file + ": expected a cluster with a calibration, as calibrate -o writes it");
  }
  const cost::MeasuredCostModel cost_model =
      input::read_cost_model(Reader(cluster.at("calibration"), file, "calibration"));
  const auto factor = cost::tree_factor(cost_model);
  if (!factor && cost_model.tree) return *cost_model.tree;
  if (!factor) {
    throw InputError(file +
                     ": calibration: expected a table of a forced tree on three nodes or more "
                     "(LOG:tree) and one of the same network that is not a tree");
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

calibrate::KernelCosts kernel_costs_of(const CalibrateOptions& options) {
  return calibrate::kernel_costs(read_json_file(options.kernels), options.kernels);
}

// `json` must outlive the file.
SideFile json_file(const std::string& path, const Json& json) {
  return {path, [&json] { return json.dump(2) + "\n"; }};
}

// From logs of nccl-tests: the cluster that they are of.
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
  if (!options.node.empty()) calibrate::set_node(calibration, tables, options.node);
  if (device) calibrate::set_device(calibration, *device);
  if (!options.kernels.empty()) {
    calibration.cluster =
        calibrate::with_kernel_costs(calibration.cluster, options.name, kernel_costs_of(options));
  }
  const SideFile out = json_file(options.out, calibration.cluster);
  const SideFile svg{options.svg, [&] { return reports::calibration_svg(calibration); }};
  answer_with({out, svg}, reports::answer_of(calibration), options.output);
  return 0;
}

// From what make gpu-check wrote: a cluster that is there gets the device that was measured.
int calibrate_from_kernels(const CalibrateOptions& options) {
  if (options.cluster.empty()) {
    throw InputError("--kernels: expected logs, or --cluster with the cluster to write it into");
  }
  const calibrate::KernelCosts costs = kernel_costs_of(options);
  const Json cluster =
      calibrate::with_kernel_costs(read_json_file(options.cluster), options.cluster, costs);
  answer_with({json_file(options.out, cluster)}, reports::answer_of(costs), options.output);
  return 0;
}

// From measured steps of a scenario's own strategies: what its device loses beside exchanges.
int calibrate_from_steps(const CalibrateOptions& options) {
  const calibrate::StepFit fit =
      calibrate::fit_steps(read({options.steps, options.set}), options.rows);
  answer_with({json_file(options.out, fit.fitted.root)}, reports::answer_of(fit), options.output);
  return 0;
}

// Ranks measure their own links.
int calibrate_live(const CalibrateOptions& options) {
  const auto& ranks = options.ranks;
  const std::string key = "calibrate " + std::to_string(options.gpus_per_node) + options.codec;
  return with_ranks(ranks, key, [&](live::ControlChannel& channel) {
    const int inside = options.gpus_per_node;
    if (channel.ranks() < 2 || channel.ranks() % inside != 0) {
      throw InputError("--gpus-per-node: found " + std::to_string(inside) +
                       ", expected a divisor of the " + std::to_string(channel.ranks()) +
                       " ranks; there must be two at least");
    }
    const Cluster shape = live::unmeasured_cluster(options.name, channel.ranks() / inside, inside);
    const bool first = channel.rank() == 0;
    const Backend& backend = backend_named(options.live);
    std::optional<calibrate::KernelCosts> kernels;
    if (first && backend.kernels != nullptr) {
      say("checking and measuring the kernels on one GPU");
      kernels = calibrate::kernel_costs(Json::parse(backend.kernels()), "the kernels' times");
    }
    channel.barrier(live::ControlChannel::kPatient);
    if (first) say("measuring the links of " + std::to_string(channel.ranks()) + " ranks");
    live::LinkCalibrationSettings settings;
    settings.codec = compress::find_codec(options.codec);
    const auto calibration = live::calibrate_links(channel, backend.make, shape, settings);
    channel.barrier();
    if (!first) return 0;
    Json json = input::cluster_json(shape, 6);
    live::set_measured_links(calibration, json);
    if (kernels) json = calibrate::with_kernel_costs(json, options.name, *kernels);
    measure::Validation validation;
    validation.cluster = options.name;
    validation.ranks = channel.ranks();
    validation.samples = calibration.samples;
    answer_with({json_file(options.out, json)}, reports::links_answer(validation, json),
                options.output);
    return 0;
  });
}

int run(const CalibrateOptions& options) {
  expect_writable({options.out, options.svg, options.output.html});
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

// Logs of collectives, and what comes of them.
void add_log_options(CLI::App& verb, CalibrateOptions& options) {
  verb.add_option("logs", options.logs,
                  "logs of one cluster, text or JSON (-J), or the folder that NCCL's Inspector "
                  "wrote; FILE@10x2: 10 nodes of 2 GPUs, where the log does not say; FILE:ring, "
                  "FILE:tree: what NCCL was forced to");
  verb.add_option("--against", options.against,
                  "logs that are not used, to be predicted at their own counts");
  verb.add_option("-o,--out", options.out, "file for the cluster (JSON)");
  verb.add_option("--svg", options.svg, "file for a plot of measured and fitted times");
  verb.add_option("--name", options.name, "name of the cluster")->capture_default_str();
  verb.add_option(
      "--node", options.node,
      "compare the logs with what other networks of such nodes reach, such as dgx-h100");
  verb.add_option("--line-rate", options.line_rate,
                  "Gbit/s that a node's NICs are rated together: how much of it the logs reach")
      ->check(number_from(1e-3, 1e7));
  verb.add_option("--algorithm", options.algorithm,
                  "what NCCL was forced to in logs that do not say it themselves (FILE:ring)")
      ->transform(one_of_words({"nccl", "ring", "tree"}))
      ->capture_default_str();
  verb.add_option("--factor-from", options.factor_from,
                  "cluster of another network, calibrated with a forced tree (LOG:tree): what a "
                  "tree costs in units of what the network carries is taken from there");
}

// What a GPU of the cluster computes and moves.
void add_device_options(CLI::App& verb, CalibrateOptions& options) {
  auto* trace = verb.add_option("--trace", options.trace,
                                "CSV (wait_us,bytes) of a measured backward pass of --workload on "
                                "one GPU: the device's rate");
  verb.add_option("--throughput", options.throughput,
                  "samples a second of --workload on one GPU: the same without a trace")
      ->check(number_from(1e-9, 1e12))
      ->excludes(trace);
  verb.add_option("--workload", options.workload,
                  "workload (JSON) that --trace or --throughput were measured with");
  verb.add_option("--kernels", options.kernels,
                  "what make gpu-check wrote on one of the cluster's GPUs (JSON): the device's "
                  "memory rate, launch and gap");
  verb.add_option("--cluster", options.cluster,
                  "cluster (JSON) whose device --kernels updates, where no logs make one");
}

// Measured steps in place of logs: what the others exclude.
CLI::Option* add_steps_options(CLI::App& verb, CalibrateOptions& options) {
  CLI::Option* steps =
      verb.add_option("--steps", options.steps,
                      "instead of logs: a scenario (JSON) whose published rows are measured steps "
                      "of its own strategies; what computation and exchanges cost each other there "
                      "goes into its cluster.device");
  verb.add_option("--rows", options.rows,
                  "with --steps: the rows that are fitted, by their names, or the first N; the "
                  "rest is predicted (default: those with \"use\": \"calibrated\", else the first "
                  "two)")
      ->needs(steps);
  add_set(verb, options.set)->needs(steps);
  return steps;
}

// Ranks in place of logs: what the others exclude.
CLI::Option* add_link_options(CLI::App& verb, CalibrateOptions& options) {
  auto* live = verb.add_option("--live", options.live,
                               "instead of logs: ranks measure their own links, with this backend")
                   ->transform(one_of_words(backend_names()));
  add_ranks_options(verb, options.ranks, live);
  verb.add_option("--gpus-per-node", options.gpus_per_node,
                  "ranks that share a node, where links inside and between nodes differ")
      ->check(CLI::Range(1, 1024))
      ->needs(live)
      ->capture_default_str();
  std::vector<std::string> codec_words;
  for (const auto& codec : compress::codecs()) {
    if (!codec.low_rank) codec_words.emplace_back(codec.name);
  }
  verb.add_option("--codec", options.codec, "codec whose encoding time is measured as well")
      ->transform(one_of_words(codec_words))
      ->needs(live)
      ->capture_default_str();
  return live;
}

void add_calibrate_options(CLI::App& verb, CalibrateOptions& options) {
  add_log_options(verb, options);
  add_device_options(verb, options);
  CLI::Option* steps = add_steps_options(verb, options);
  add_format(verb, options.output);
  add_html(verb, options.output);
  CLI::Option* live = add_link_options(verb, options);
  for (const char* other :
       {"logs", "--against", "--svg", "--line-rate", "--node", "--algorithm", "--factor-from",
        "--trace", "--throughput", "--workload", "--kernels", "--cluster"}) {
    live->excludes(verb.get_option(other));
    steps->excludes(verb.get_option(other));
  }
  live->excludes(steps);
}

}  // namespace

VerbAction add_calibrate(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  auto* verb = app.add_subcommand("calibrate",
                                  "Turn logs of nccl-tests, or of NCCL's Inspector in a job, into "
                                  "a cluster description, and say "
                                  "how far to trust it");
  add_calibrate_options(*verb, *options);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
