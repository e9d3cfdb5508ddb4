#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/backends.h"
#include "cli/help.h"
#include "cli/modules/live.h"
#include "cli/modules/ranks.h"
#include "cli/options.h"
#include "cli/output.h"
#include "core/base/error.h"
#include "core/codec.h"
#include "core/cost/cost_model.h"
#include "formats/input/cost_model_json.h"
#include "formats/input/document.h"
#include "formats/input/scenario_json.h"
#include "formats/json/reader.h"
#include "formats/json/text.h"
#include "live/link_calibration.h"
#include "reports/calibration.h"
#include "reports/validation_report.h"
#include "studies/calibrate/calibration.h"
#include "studies/calibrate/device_fit.h"
#include "studies/calibrate/log_files.h"
#include "studies/calibrate/step_fit.h"

namespace syncline::cli {
namespace {

struct CalibrateOptions {
  std::string instead;  // today's command for the old form, without a verb of calibrate's
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

// Returns the factor of the forced trees in a cluster that was calibrated with one.
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

// Prints the answer and writes files. `made` is the requested file.
int write_answer(const CalibrateOptions& options, const Json& made, const reports::Answer& answer,
                 const std::function<std::string()>& svg = {}) {
  const SideFile file{options.out, [&] { return made.dump(2) + "\n"; }};
  write_answer({file, {options.svg, svg}}, answer, options.output);
  if (!options.instead.empty()) {
    say("syncline: calibrate has verbs of its own: use syncline calibrate " + options.instead);
  }
  return 0;
}

// Calibrates from logs of nccl-tests: writes the cluster that they measured.
int calibrate_from_logs(const CalibrateOptions& options) {
  if (options.logs.empty()) {
    throw InputError(
        options.kernels.empty()
            ? "logs: expected at least one; or measure links with calibrate live, read "
              "the file of make gpu-check with calibrate kernels, or measured steps "
              "with calibrate steps"
            : "--kernels needs logs, or --cluster with the cluster to update");
  }
  const auto tables = calibrate::read_tables(options.logs, options.algorithm);
  const auto against = calibrate::read_tables(options.against, options.algorithm);
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
  // The other forms have a place for warnings.
  if (options.output.format == reports::Format::kCsv) tell_warnings(calibration.warnings);
  const int code = write_answer(options, calibration.cluster, reports::answer_of(calibration),
                                [&] { return reports::calibration_svg(calibration); });
  if (!options.out.empty()) {
    say("next: syncline init MODEL --cluster " + options.out +
        " --nodes N -o job.json, or syncline run JOB --set cluster=" + options.out);
  }
  return code;
}

// Calibrates from the file of make gpu-check: gives an existing cluster the measured device.
int calibrate_from_kernels(const CalibrateOptions& options) {
  const calibrate::KernelCosts costs = kernel_costs_of(options);
  const Json cluster =
      calibrate::with_kernel_costs(read_json_file(options.cluster), options.cluster, costs);
  may_be_replaced(options.cluster);  // a cluster is completed in place
  return write_answer(options, cluster, reports::answer_of(costs));
}

// Calibrates the device's losses outside of exchanges from measured steps of a scenario.
int calibrate_from_steps(const CalibrateOptions& options) {
  const calibrate::StepFit fit =
      calibrate::fit_steps(read({options.steps, options.set}), options.rows);
  return write_answer(options, fit.fitted.root, reports::answer_of(fit));
}

// Calibrates by measuring the links between ranks.
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
    const live::Backend& backend = backend_named(options.live);
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
    return write_answer(options, json, reports::links_answer(validation, json));
  });
}

// Adds the outputs of a verb.
void add_outputs(CLI::App& verb, CalibrateOptions& options, const std::string& made = "cluster") {
  add_file(verb, "-o,--out", options.out, ("write the " + made + " (JSON)").c_str());
  add_format(verb, options.output);
  add_html(verb, options.output);
  verb.add_option("--old-form", options.instead)->group("");
}

void add_log_options(CLI::App& verb, CalibrateOptions& options) {
  verb.add_option(
      "logs", options.logs,
      "nccl-tests logs (FILE@10x2: nodes x GPUs; FILE:tree: forced; FILE:half: type) or "
      "Inspector's folder");
  add_file(verb, "--against", options.against, "logs to predict, not to fit");
  add_outputs(verb, options);
  add_file(verb, "--svg", options.svg, "plot measured and fitted times");
  verb.add_option("--name", options.name, "name of the cluster")->capture_default_str();
  verb.add_option("--node", options.node,
                  "compare with published networks of this node, such as dgx-h100");
  verb.add_option("--line-rate", options.line_rate,
                  "compare with the rated Gbit/s of a node's NICs together")
      ->type_name("GBITS")
      ->check(number_between(1e-3, 1e7));
  verb.add_option("--algorithm", options.algorithm, "algorithm of logs that do not state it")
      ->transform(one_of_words({"nccl", "ring", "tree"}))
      ->capture_default_str();
  add_file(verb, "--factor-from", options.factor_from,
           "use the tree cost factor of this calibrated cluster (JSON)");
  auto* trace = add_file(verb, "--trace", options.trace,
                         "backward pass of --workload on one GPU: CSV of wait_us,bytes");
  verb.add_option("--throughput", options.throughput, "samples per second of --workload on one GPU")
      ->check(number_between(1e-9, 1e12))
      ->excludes(trace);
  add_file(verb, "--workload", options.workload, "workload (JSON) of --trace or --throughput");
  add_file(verb, "--kernels", options.kernels, "kernel times of one GPU (JSON of make gpu-check)");
  put_in_group(verb, "Logs", {"--svg", "--algorithm", "--factor-from"});
  put_in_group(verb, "Device of a GPU", {"--trace", "--throughput", "--workload", "--kernels"});
}

void add_step_options(CLI::App& verb, CalibrateOptions& options) {
  add_file(verb, "file", options.steps, "scenario (JSON) with measured steps")->required();
  add_outputs(verb, options, "scenario");
  verb.add_option("--rows", options.rows,
                  "rows to fit, names or the first N (default: calibrated rows, else 2)");
  add_set(verb, options.set);
}

void add_link_options(CLI::App& verb, CalibrateOptions& options) {
  verb.add_option("backend", options.live, "backend of the ranks")
      ->transform(one_of_words(backend_names()))
      ->required();
  add_outputs(verb, options);
  verb.add_option("--name", options.name, "name of the cluster")->capture_default_str();
  add_ranks_options(verb, options.ranks);
  verb.add_option("--gpus-per-node", options.gpus_per_node, "ranks per node")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  std::vector<std::string> codec_words;
  for (const auto& codec : compress::codecs()) {
    if (!codec.low_rank) codec_words.emplace_back(codec.name);
  }
  verb.add_option("--codec", options.codec, "codec to measure as well")
      ->transform(one_of_words(codec_words))
      ->capture_default_str();
}

void add_kernel_options(CLI::App& verb, CalibrateOptions& options) {
  add_file(verb, "file", options.kernels, "kernel times of one GPU (JSON of make gpu-check)")
      ->required();
  add_outputs(verb, options);
  add_file(verb, "--cluster", options.cluster, "cluster (JSON) to update")->required();
}

// A verb of calibrate, named after its input.
struct Tool {
  std::string name;
  const char* about;
  void (*add_options)(CLI::App& verb, CalibrateOptions& options);
  int (*run)(const CalibrateOptions& options);
};

const std::vector<Tool>& tools() {
  static const std::vector<Tool> tools{
      {"logs", "Fit a cluster to logs of nccl-tests or NCCL Inspector", add_log_options,
       calibrate_from_logs},
      {"steps", "Fit interference to a scenario's measured steps", add_step_options,
       calibrate_from_steps},
      {"live", "Measure the links of running ranks", add_link_options, calibrate_live},
      {"kernels", "Write a GPU's measured kernel rates into a cluster", add_kernel_options,
       calibrate_from_kernels}};
  return tools;
}

}  // namespace

VerbAction add_calibrate(CLI::App& verb) {
  auto options = std::make_shared<CalibrateOptions>();
  for (const Tool& tool : tools()) {
    tool.add_options(*verb.add_subcommand(tool.name, tool.about)->group("Verbs"), *options);
  }
  return [options, &verb] {
    expect_writable({options->out, options->svg, options->output.html});
    const std::string name = verb.get_subcommands().front()->get_name();
    return std::ranges::find(tools(), name, &Tool::name)->run(*options);
  };
}

}  // namespace syncline::cli
