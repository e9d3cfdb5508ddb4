// Any bytes are the costs of kernels that `make gpu-check` measured or an InputError.
#include "formats/json/text.h"
#include "studies/calibrate/device_fit.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_mutator.h"

SYNCLINE_FUZZ_TARGET(kernels, bytes) {
  using namespace syncline;
  const auto costs = calibrate::kernel_costs(parse_json_text("fuzzed.json", bytes), "fuzzed.json");
  const Json cluster = Json::parse(
      R"({"name": "c", "nodes": 1, "gpus_per_node": 2,
          "intra": {"latency_us": 4, "bandwidth_gbps": 100}})");
  (void)calibrate::with_kernel_costs(cluster, "fuzzed.json", costs);
}
