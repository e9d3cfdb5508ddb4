// What the launchers of dgc_step.h refuse, and where its inspection's results lie.
#include <cmath>
#include <string>

#include "kernels/dgc_step.h"
#include "kernels/workspace.h"

namespace syncline::kernels {
namespace {

Status check_prepared(const DgcPlan& plan, const char* launcher) {
  if (plan.workspace) return {};
  return failure(std::string(launcher) + ": the plan has no workspace: call dgc_prepare first");
}

}  // namespace

Status check_dgc_prepare(const DgcPlan& plan, const void* workspace, std::size_t workspace_bytes) {
  return check_workspace("dgc_prepare", workspace, workspace_bytes, plan.workspace_bytes);
}

Status check_dgc_inspect(const DgcPlan& plan, const DgcInspection& inspection) {
  if (auto status = check_prepared(plan, "dgc_inspect"); !status.ok()) return status;
  if (!std::isfinite(inspection.max_norm) || inspection.max_norm < 0) {
    return failure("dgc_inspect: max_norm is " + std::to_string(inspection.max_norm) +
                   ", not a number from 0 on");
  }
  return {};
}

Status check_dgc_step(const DgcPlan& plan, const DgcStep& step) {
  if (auto status = check_prepared(plan, "dgc_step"); !status.ok()) return status;
  if (!std::isfinite(step.momentum)) return failure("dgc_step: momentum is not finite");
  if (!std::isfinite(step.scale)) return failure("dgc_step: scale is not finite");
  if (!std::isfinite(step.weight_decay)) return failure("dgc_step: weight_decay is not finite");
  if (!std::isfinite(step.candidate_scale) || step.candidate_scale < 0) {
    return failure("dgc_step: candidate_scale is negative or not a number");
  }
  if (step.weight_decay != 0 && !plan.weights) {
    return failure("dgc_step: weight_decay is not 0, but a tensor has no weight");
  }
  if (plan.packed > 0 && !step.indices) return failure("dgc_step: indices is null");
  if (plan.packed > 0 && !step.values) return failure("dgc_step: values is null");
  if (!plan.rows.empty() && !step.reports) return failure("dgc_step: reports is null");
  return {};
}

const float* dgc_coefficients(const DgcPlan& plan) {
  return dgc_tables(plan, plan.workspace).coefficients;
}

const std::int32_t* dgc_skip_flag(const DgcPlan& plan) {
  return dgc_tables(plan, plan.workspace).skip;
}

}  // namespace syncline::kernels
