#include <charconv>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/files.h"
#include "cli/verbs.h"
#include "core/calibrate/calibration.h"
#include "core/calibrate/nccl_log.h"
#include "core/error.h"
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

// FILE or FILE@10x2: the counts of nodes and GPUs a node of all tables in it.
struct LogFile {
  std::string path;
  int nodes = 0;
  int gpus_per_node = 0;
};

bool whole_number(std::string_view text, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0;
}

LogFile log_file(const std::string& argument) {
  const auto at = argument.rfind('@');
  if (at == std::string::npos) return {argument, 0, 0};
  const std::string_view shape = std::string_view(argument).substr(at + 1);
  const auto cross = shape.find('x');
  LogFile file{argument.substr(0, at), 0, 0};
  if (cross == std::string_view::npos || !whole_number(shape.substr(0, cross), file.nodes) ||
      !whole_number(shape.substr(cross + 1), file.gpus_per_node)) {
    // A name may hold the sign itself.
    return {argument, 0, 0};
  }
  return file;
}

std::vector<MeasuredTable> read_tables(const std::vector<std::string>& arguments) {
  std::vector<MeasuredTable> tables;
  for (const auto& argument : arguments) {
    const LogFile file = log_file(argument);
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

int run(const CalibrateOptions& options) {
  const auto tables = read_tables(options.logs);
  const auto against = read_tables(options.against);
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
