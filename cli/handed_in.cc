// The rows that this program is made of: frameworks, predictors and backends. main alone knows all.
#include "cli/handed_in.h"

#include "backend_gloo/gloo_executor.h"
#include "backend_nccl/nccl_executor.h"
#include "cli/backends.h"
#include "cli/predictors.h"
#include "cli/target.h"
#include "core/executor.h"
#include "core/sim/sim_executor.h"
#include "formats/dialect/dialects.h"

namespace syncline::cli {
namespace {

live::LiveExecutorFactory nccl_with_operators(const Device& device, int channels) {
  return [device, channels](const Workload& workload, live::ControlChannel& channel) {
    nccl_backend::NcclSettings settings;
    settings.operators = &device;
    settings.max_ctas = channels;
    return nccl_backend::make_nccl_executor(workload, channel, settings);
  };
}

}  // namespace

void hand_in_all() {
  hand_in(&print_to_target);
  dialect::hand_in(dialect::all_dialects());
  questions::hand_in({
      {"model", "closed form: streams as queues, links shared fairly", run::make_model_executor},
      {"sim", "SimGrid: every link and rank, merged or step by step", sim::make_sim_executor},
  });
  hand_in(std::vector<Backend>{
      {"gloo", "ranks on CPUs over sockets, with timers for computation",
       gloo_backend::make_gloo_executor},
      {"nccl", "ranks on GPUs over NCCL",
       [](const Workload& workload, live::ControlChannel& channel) {
         return nccl_backend::make_nccl_executor(workload, channel);
       },
       [] { return nccl_backend::measured_kernels(); }, nccl_with_operators},
  });
}

}  // namespace syncline::cli
