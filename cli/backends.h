// Backends by name, each of which runs a plan on ranks: rows that main hands in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "live/live_executor.h"

namespace syncline::cli {

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

// Sets the table. main calls it once.
void hand_in(std::vector<Backend> rows);

// The table, in the order in which it was handed in.
const std::vector<Backend>& backends();
std::vector<std::string> backend_names();

// Requires one of their names, which --backend has checked.
const Backend& backend_named(std::string_view name);

}  // namespace syncline::cli
