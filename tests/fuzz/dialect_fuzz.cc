// Any bytes are a framework's configuration (the first letter says whose) or an InputError.
#include "core/plan.h"
#include "formats/dialect/dialect.h"
#include "formats/json/text.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_mutator.h"

namespace {

using namespace syncline;

Workload some_gradients() {
  Workload workload;
  workload.name = "w";
  workload.batch = 8;
  workload.forward = 1e-3;
  for (int i = 0; i < 6; ++i) {
    Tensor tensor;
    tensor.name = "layer" + std::to_string(i / 2) + ".p" + std::to_string(i);
    tensor.shape = {1000 + 700000 * (i % 3)};
    tensor.elements = tensor.shape.front();
    tensor.backward = 1e-4;
    workload.tensors.push_back(tensor);
  }
  return workload;
}

Cluster some_nodes() {
  Cluster cluster;
  cluster.name = "c";
  cluster.nodes = 2;
  cluster.gpus_per_node = 4;
  cluster.tiers.resize(2);
  for (Tier& tier : cluster.tiers) {
    tier.latency = 5e-6;
    tier.bandwidth = 1e10;
  }
  return cluster;
}

}  // namespace

// {"NAME": CONFIG}: a text that the changes of values know how to change.
SYNCLINE_FUZZ_TARGET(dialect, bytes) {
  static const Workload workload = some_gradients();
  static const Cluster cluster = some_nodes();
  const Json root = parse_json_text("fuzzed.json", bytes);
  if (!root.is_object() || root.empty()) return;
  const dialect::Dialect* dialect = dialect::find_dialect(root.begin().key());
  if (dialect == nullptr || !root.front().is_object()) return;
  for (const bool as_documents : {false, true}) {
    const auto reading = dialect::reading_of(*dialect, root.front(), workload, cluster,
                                             {.as_documents = as_documents, .algorithm = ""});
    if (reading.strategy.local_sgd.enabled && reading.strategy.local_sgd.period > 64) continue;
    (void)plan::make_plan(workload, cluster, reading.strategy);
  }
}
