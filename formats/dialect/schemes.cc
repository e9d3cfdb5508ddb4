#include "formats/dialect/schemes.h"

#include <algorithm>
#include <utility>

namespace syncline::dialect {

std::vector<Scheme> schemes_of_framework(std::string_view dialect, const Json& config,
                                         const Workload& workload, const Cluster& cluster) {
  const Dialect* row = find_dialect(dialect.empty() ? "pytorch" : dialect);
  if (row == nullptr || row->schemes == nullptr) return {};
  return row->schemes(config, workload, cluster);
}

void set_batches(std::string_view dialect, std::int64_t batch, std::int64_t micro_batches,
                 Json& config) {
  const Dialect* row = find_dialect(dialect);
  if (row == nullptr || row->set_batches == nullptr || !config.is_object()) return;
  row->set_batches(batch, micro_batches, config);
}

std::string_view framework_of_cut_jobs() {
  const auto rows = dialects();
  const auto row = std::ranges::find_if(rows, &Dialect::cuts_jobs);
  return row == rows.end() ? std::string_view() : row->name;
}

Json patched_config(Json config, const Json& patch) {
  if (!config.is_object()) config = Json::object();
  config.merge_patch(patch);
  return config;
}

bool has_levels(const Cluster& cluster) { return cluster.nodes > 1 && cluster.gpus_per_node > 1; }

}  // namespace syncline::dialect
