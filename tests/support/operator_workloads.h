// Workloads with operators, for tests: an architecture as a device predicts it.
#pragma once

#include <string_view>

#include "catalogue/architectures/architecture.h"
#include "core/cluster.h"
#include "core/job.h"
#include "core/operators/evaluate.h"

namespace syncline::test {

inline Device small_gpu() {
  Device device;
  device.flops = 15.7e12;
  device.half_flops = 125e12;
  device.memory = 900e9;
  device.launch = 5e-6;
  device.kernel_gap = 1e-6;
  return device;
}

inline Workload evaluated(Workload workload, const Device& device) {
  const operators::StepTimes times = operators::evaluate_operators(workload.operators, device);
  workload.forward = times.forward;
  workload.update = times.update;
  for (std::size_t i = 0; i < times.backward.size(); ++i) {
    workload.tensors[i].backward = times.backward[i];
  }
  return workload;
}

// Requires a name of operators::architectures(). It has no times.
inline Workload architecture(std::string_view name, operators::ArchitectureOptions options = {}) {
  const operators::Architecture& row = *operators::find_architecture(name);
  options.optimizer = row.optimizer;
  operators::Generated made = operators::generate(row, options);
  Workload workload;
  workload.name = name;
  workload.batch = options.batch;
  workload.operators = made.operators;
  workload.tensors = std::move(made.tensors);
  workload.buffers = std::move(made.buffers);
  return workload;
}

}  // namespace syncline::test
