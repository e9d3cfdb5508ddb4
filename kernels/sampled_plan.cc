// The plan of sampled_step, and what its launchers refuse.
#include <string>

#include "kernels/sampled_threshold.h"
#include "kernels/workspace.h"

namespace syncline::kernels {
namespace {

std::size_t lay_out(const SampledPlan& sampled, void* base, SampledTables* tables) {
  const auto tensors = static_cast<std::int64_t>(sampled.tensors);
  WorkspaceParts parts(base);
  parts.next(&tables->samples, tensors * kSampleWindows);
  parts.next(&tables->thresholds, tensors);
  parts.next(&tables->block_counts, tensors * kSampleBlocks);
  parts.next(&tables->offsets, tensors * kSampleBlocks * 256);
  return parts.used();
}

}  // namespace

Status sampled_plan(const DgcPlan& plan, SampledPlan* sampled) {
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    const DgcRow& row = plan.rows[i];
    const std::string tensor = "sampled_plan: tensor " + std::to_string(i);
    if (row.elements < 16384) {
      return failure(tensor + ": has " + std::to_string(row.elements) +
                     " elements, sampling needs 16384");
    }
    if (row.kept < 2) {
      return failure(tensor + ": kept is " + std::to_string(row.kept) + ", sampling needs 2");
    }
  }
  if (plan.rows.size() > 65535) return failure("sampled_plan: more than 65535 tensors");
  SampledPlan made;
  made.tensors = plan.rows.size();
  SampledTables unused{};
  made.workspace_bytes = lay_out(made, nullptr, &unused);
  *sampled = made;
  return {};
}

SampledTables sampled_tables(const SampledPlan& sampled, void* base) {
  SampledTables tables{};
  lay_out(sampled, base, &tables);
  return tables;
}

Status check_sampled_step(const DgcPlan& plan, const SampledPlan& sampled, const void* workspace,
                          std::size_t workspace_bytes, const DgcStep& step) {
  if (auto status = check_dgc_step(plan, step); !status.ok()) return status;
  if (sampled.tensors != plan.rows.size()) {
    return failure("sampled_step: the two plans are of different tensors");
  }
  return check_workspace("sampled_step", workspace, workspace_bytes, sampled.workspace_bytes);
}

}  // namespace syncline::kernels
