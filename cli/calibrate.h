// `syncline calibrate`: the ways to a cluster, and to a device's losses, each with its printing.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/ranks.h"

namespace syncline::cli {

struct CalibrateOptions {
  std::vector<std::string> logs;
  std::vector<std::string> against;
  std::string out;
  std::string svg;
  std::string html;
  std::string name;
  OutputFormat format;
  double line_rate = 0;  // Gbit/s; 0: not given
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

void add_calibrate_options(CLI::App& verb, CalibrateOptions& options);

// Each returns the exit code and throws InputError and MachineError.

// From logs of nccl-tests: the cluster that they are of.
int calibrate_from_logs(const CalibrateOptions& options);

// From what make gpu-check wrote: a cluster that is there gets the device that was measured.
int calibrate_from_kernels(const CalibrateOptions& options);

// From measured steps of a scenario's own strategies: what its device loses beside exchanges.
int calibrate_from_steps(const CalibrateOptions& options);

// Ranks measure their own links.
int calibrate_live(const CalibrateOptions& options);

}  // namespace syncline::cli
