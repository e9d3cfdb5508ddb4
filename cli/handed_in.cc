// The rows of this program: frameworks, predictors and backends. Only main knows all of them.
#include "cli/handed_in.h"

#include "cli/backends.h"
#include "cli/predictors.h"
#include "cli/target.h"
#include "core/executor.h"
#include "core/sim/sim_executor.h"
#include "formats/dialect/dialects.h"

namespace syncline::cli {
void hand_in_all() {
  hand_in(&print_to_target);
  dialect::hand_in(dialect::all_dialects());
  questions::hand_in({
      {"model", "closed form: streams as queues, links shared fairly", run::make_model_executor},
      {"sim", "SimGrid: every link and rank, merged or step by step", sim::make_sim_executor},
  });
  hand_in(std::vector<BackendRow>{
      {"gloo", "ranks on CPUs over sockets, with timers for computation"},
      {"nccl", "ranks on GPUs over NCCL"},
  });
}

}  // namespace syncline::cli
