#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/executors.h"
#include "cli/help.h"
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
                     "(LOG:tree) and one without a tree, of the same network");
  }
  return {*factor, file};
}

std::optional<calibrate::DeviceFit> device_of(const CalibrateOptions& options) {
  if (options.workload.empty()) {
    if (options.trace.empty() && options.throughput == 0) return std::nullopt;
    throw InputError("--trace and --throughput need --workload, which gives the FLOPs");
  }
  const Json workload = read_json_file(options.workload);
  if (!options.trace.empty()) {
    return calibrate::device_from_trace(workload, options.workload,
                                        calibrate::read_trace(options.trace), options.trace);
  }
  if (options.throughput == 0) {
    throw InputError("--workload needs --trace or --throughput");
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
  if (options.node.empty()) calibration.kinds = calibrate::nodes_of_gpus(tables);
  if (!options.node.empty() || calibration.kinds.size() == 1) {
    calibrate::set_node(calibration, tables,
                        options.node.empty() ? calibration.kinds.front() : options.node);
  }
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
    throw InputError("--kernels needs logs, or --cluster with the cluster to update");
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
                       " ranks, and at least 2 ranks");
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
    settings.computing = backend.with_operators;
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
        "logs: expected at least one; or --live gloo to measure links, --kernels with the file of "
        "make gpu-check, or --steps with a scenario of measured steps");
  }
  if (!options.cluster.empty()) {
    throw InputError("--cluster is for --kernels without logs: logs define the cluster");
  }
  return calibrate_from_logs(options);
}

// Logs of collectives, and what comes of them.
void add_log_options(CLI::App& verb, CalibrateOptions& options) {
  verb.add_option("logs", options.logs,
                  "nccl-tests logs (FILE@10x2: 10 nodes of 2 GPUs; FILE:tree: forced tree) or "
                  "Inspector's folder");
  add_file(verb, "--against", options.against, "logs to predict, not to fit");
  add_file(verb, "-o,--out", options.out, "write the cluster (JSON)");
  add_file(verb, "--svg", options.svg, "plot measured and fitted times");
  verb.add_option("--name", options.name, "name of the cluster")->capture_default_str();
  verb.add_option("--node", options.node,
                  "compare with published networks of this node, such as dgx-h100");
  verb.add_option("--line-rate", options.line_rate,
                  "compare with the rated Gbit/s of a node's NICs together")
      ->type_name("GBITS")
      ->check(number_from(1e-3, 1e7));
  verb.add_option("--algorithm", options.algorithm, "algorithm of logs that do not state it")
      ->transform(one_of_words({"nccl", "ring", "tree"}))
      ->capture_default_str();
  add_file(verb, "--factor-from", options.factor_from,
           "use the tree cost factor of this calibrated cluster (JSON)");
}

// What a GPU of the cluster computes and moves.
void add_device_options(CLI::App& verb, CalibrateOptions& options) {
  auto* trace = add_file(verb, "--trace", options.trace,
                         "backward pass of --workload on one GPU: CSV of wait_us,bytes");
  verb.add_option("--throughput", options.throughput, "samples per second of --workload on one GPU")
      ->check(number_from(1e-9, 1e12))
      ->excludes(trace);
  add_file(verb, "--workload", options.workload, "workload (JSON) of --trace or --throughput");
  add_file(verb, "--kernels", options.kernels, "kernel times of one GPU (JSON of make gpu-check)");
  add_file(verb, "--cluster", options.cluster,
           "cluster (JSON) to update with --kernels, without logs");
}

// Measured steps in place of logs: what the others exclude.
CLI::Option* add_steps_options(CLI::App& verb, CalibrateOptions& options) {
  CLI::Option* steps =
      add_file(verb, "--steps", options.steps,
               "fit interference to the measured steps of this scenario, without logs");
  verb.add_option("--rows", options.rows,
                  "rows to fit, names or the first N (default: calibrated rows, else 2)")
      ->needs(steps);
  add_set(verb, options.set)->needs(steps);
  return steps;
}

// Ranks in place of logs: what the others exclude.
CLI::Option* add_link_options(CLI::App& verb, CalibrateOptions& options) {
  auto* live = verb.add_option("--live", options.live, "measure the links of ranks, without logs")
                   ->transform(one_of_words(backend_names()));
  add_ranks_options(verb, options.ranks, live);
  verb.add_option("--gpus-per-node", options.gpus_per_node, "ranks per node")
      ->check(CLI::Range(1, 1024))
      ->needs(live)
      ->capture_default_str();
  std::vector<std::string> codec_words;
  for (const auto& codec : compress::codecs()) {
    if (!codec.low_rank) codec_words.emplace_back(codec.name);
  }
  verb.add_option("--codec", options.codec, "codec to measure as well")
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
  put_in_group(verb, "Logs", {"--svg", "--algorithm", "--factor-from"});
  put_in_group(verb, "Device of a GPU",
               {"--trace", "--throughput", "--workload", "--kernels", "--cluster"});
  put_in_group(verb, "Measured steps (with --steps)", {"--rows", "--set"});
  put_in_group(verb, "Links of ranks (with --live)",
               {"--ranks", "--timeout", "--meet", "--gpus-per-node", "--codec"});
}

}  // namespace

VerbAction add_calibrate(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  auto* verb =
      app.add_subcommand("calibrate", "Fit a cluster to nccl-tests logs, step times or live links");
  add_calibrate_options(*verb, *options);
  return [options] { return run(*options); };
}

}  // namespace syncline::cli
