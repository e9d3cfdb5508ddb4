#include "cli/executors.h"

#include <algorithm>
#include <cassert>

#include "backend_gloo/gloo_executor.h"
#include "backend_nccl/nccl_executor.h"
#include "core/run/executor.h"
#include "sim/sim_executor.h"

namespace syncline::cli {
namespace {

template <typename Row>
std::vector<std::string> names_of(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

template <typename Row>
const Row& row_named(const std::vector<Row>& rows, std::string_view name) {
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const Row& one) { return one.name == name; });
  assert(row != rows.end() && "the option's check lets known names through alone");
  return *row;
}

live::LiveExecutorFactory nccl_with_operators(const Device& device, int channels) {
  return [device, channels](const Workload& workload, live::ControlChannel& channel) {
    nccl_backend::NcclSettings settings;
    settings.operators = &device;
    settings.max_ctas = channels;
    return nccl_backend::make_nccl_executor(workload, channel, settings);
  };
}

}  // namespace

const std::vector<Predictor>& predictors() {
  static const std::vector<Predictor> rows{
      {"model", "closed form: streams as queues, links shared fairly", run::make_model_executor},
      {"sim", "SimGrid: every link and rank, merged or step by step", sim::make_sim_executor},
  };
  return rows;
}

const std::vector<Backend>& backends() {
  static const std::vector<Backend> rows{
      {"gloo", "ranks on CPUs over sockets, with timers for computation",
       gloo_backend::make_gloo_executor},
      {"nccl", "ranks on GPUs over NCCL",
       [](const Workload& workload, live::ControlChannel& channel) {
         return nccl_backend::make_nccl_executor(workload, channel);
       },
       [] { return nccl_backend::measured_kernels(); }, nccl_with_operators},
  };
  return rows;
}

std::vector<std::string> predictor_names() { return names_of(predictors()); }
std::vector<std::string> backend_names() { return names_of(backends()); }

const Predictor& predictor_named(std::string_view name) { return row_named(predictors(), name); }
const Backend& backend_named(std::string_view name) { return row_named(backends(), name); }

}  // namespace syncline::cli
