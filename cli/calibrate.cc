#include <charconv>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/files.h"
#include "cli/verbs.h"
#include "core/calibrate/calibration.h"
#include "core/calibrate/law_json.h"
#include "core/calibrate/nccl_log.h"
#include "core/calibrate/tiers.h"
#include "core/error.h"
#include "core/scenario/document.h"
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
  std::string algorithm = "nccl";
  std::string factor_from;
  std::string workload;
  std::string trace;
  double throughput = 0;
};

// FILE, FILE@10x2 (the counts of nodes and GPUs a node of all tables in it), FILE:ring (what NCCL
// was forced to), FILE@10x2:ring.
struct LogFile {
  std::string path;
  ForcedAlgorithm forced = ForcedAlgorithm::kNone;
  int nodes = 0;
  int gpus_per_node = 0;
};

bool whole_number(std::string_view text, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0;
}

const std::vector<std::pair<std::string, ForcedAlgorithm>> kAlgorithms = {
    {"nccl", ForcedAlgorithm::kNone},
    {"ring", ForcedAlgorithm::kRing},
    {"tree", ForcedAlgorithm::kTree}};

LogFile log_file(std::string argument, const std::string& algorithm) {
  ForcedAlgorithm forced = ForcedAlgorithm::kNone;
  for (const auto& [name, value] : kAlgorithms) {
    if (name == algorithm) forced = value;
  }
  for (const auto& [name, value] : kAlgorithms) {
    const std::string ending = ":" + name;
    if (argument.size() <= ending.size() || !argument.ends_with(ending)) continue;
    argument.resize(argument.size() - ending.size());
    forced = value;
    break;
  }
  const auto at = argument.rfind('@');
  if (at == std::string::npos) return {argument, forced, 0, 0};
  const std::string_view shape = std::string_view(argument).substr(at + 1);
  const auto cross = shape.find('x');
  LogFile file{argument.substr(0, at), forced, 0, 0};
  if (cross == std::string_view::npos || !whole_number(shape.substr(0, cross), file.nodes) ||
      !whole_number(shape.substr(cross + 1), file.gpus_per_node)) {
    // A name may hold the sign itself.
    return {argument, forced, 0, 0};
  }
  return file;
}

std::vector<MeasuredTable> read_tables(const std::vector<std::string>& arguments,
                                       const std::string& algorithm) {
  std::vector<MeasuredTable> tables;
  for (const auto& argument : arguments) {
    const LogFile file = log_file(argument, algorithm);
    bool any = false;
    std::string seen;
    for (MeasuredTable& table : read_nccl_log(file.path)) {
      seen += (seen.empty() ? "" : ", ") + (table.test.empty() ? "unknown" : table.test);
      // What a plan never asks for is no part of a cluster's law: alltoall, sendrecv, gather.
      if (!table.kind) continue;
      if (file.nodes > 0) set_shape(table, file.nodes, file.gpus_per_node);
      const std::string place = file.path + ": line " + std::to_string(table.line) + ": ";
      if (table.nodes == 0 || table.gpus_per_node == 0) {
        throw InputError(place + "the log does not say on how many nodes" +
                         (table.ranks > 0 ? " its " + std::to_string(table.ranks) + " ranks were"
                                          : " and GPUs it ran") +
                         "; append them to the name: " + file.path + "@NODESxGPUS, e.g. @2x8");
      }
      if (table.nodes * table.gpus_per_node < 2) {
        throw InputError(place + "one rank exchanges nothing");
      }
      table.forced = file.forced;
      if (file.forced == ForcedAlgorithm::kTree && table.kind != CollectiveKind::kAllReduce) {
        throw InputError(place + "algorithm tree: NCCL has it for all_reduce only, found " +
                         table.test);
      }
      any = true;
      tables.push_back(std::move(table));
    }
    if (!any) {
      throw InputError(file.path +
                       ": expected all_reduce, all_gather, reduce_scatter, broadcast or reduce, "
                       "found " +
                       seen);
    }
  }
  return tables;
}

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

int run(const CalibrateOptions& options) {
  const auto tables = read_tables(options.logs, options.algorithm);
  const auto against = read_tables(options.against, options.algorithm);
  std::optional<TreeFactor> tree;
  if (!options.factor_from.empty()) tree = factor_from(options.factor_from);
  const auto device = device_of(options);
  LogCalibration calibration = calibration_of(tables, against, options.name, tree);
  if (device) set_device(calibration, *device);
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
                   "the log does not say; FILE:ring, FILE:tree: what NCCL was forced to")
      ->required();
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
  verb->add_option("--format", options->format, "what is printed")
      ->check(CLI::IsMember({"text", "markdown", "json"}))
      ->capture_default_str();
  return [options] { return run(*options); };
}

}  // namespace syncline
