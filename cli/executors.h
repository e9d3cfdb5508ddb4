// What runs a plan, by name: executors that predict, and backends on which ranks run it. A row here
// is all that the command line, its help and `syncline list` know of one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/measure/study.h"
#include "live/live_executor.h"

namespace syncline::cli {

struct Predictor {
  std::string_view name;
  std::string_view summary;
  measure::ExecutorFactory make;
};

struct Backend {
  std::string_view name;
  std::string_view summary;
  live::LiveExecutorFactory make;  // its computation is timers
  // What the kernels take on this process's device, as `calibrate kernels` reads it; null: it has
  // no device of its own.
  std::string (*kernels)() = nullptr;
  // Its computation is the workload's operators; those without a kernel take the time that `device`
  // predicts. `channels`: blocks that a communicator may take; 0: the library's choice. Null: the
  // backend has no kernels.
  live::LiveExecutorFactory (*with_operators)(const Device& device, int channels) = nullptr;
};

const std::vector<Predictor>& predictors();
const std::vector<Backend>& backends();

std::vector<std::string> predictor_names();
std::vector<std::string> backend_names();

// Requires one of these names, which --executor and --backend have checked.
const Predictor& predictor_named(std::string_view name);
const Backend& backend_named(std::string_view name);

}  // namespace syncline::cli
