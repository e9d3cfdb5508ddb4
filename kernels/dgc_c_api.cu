#include "kernels/dgc_c_api.h"

#include <vector>

#include "kernels/c_status.h"
#include "kernels/dgc_step.h"
#include "kernels/sampled_threshold.h"
#include "kernels/sparse_apply.h"

using namespace syncline::kernels;

namespace {

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

const DgcPlan& dgc_of(const void* plan) { return *static_cast<const DgcPlan*>(plan); }

const SparsePlan& sparse_of(const void* plan) { return *static_cast<const SparsePlan*>(plan); }

std::size_t bytes_of(int64_t bytes) { return bytes < 0 ? 0 : static_cast<std::size_t>(bytes); }

DgcStep step_of(float momentum, float scale, float weight_decay, int nesterov,
                const float* coefficients, int one_coefficient, const int32_t* skip,
                float candidate_scale, uint32_t* indices, float* values, void* reports) {
  DgcStep step;
  step.momentum = momentum;
  step.scale = scale;
  step.weight_decay = weight_decay;
  step.nesterov = nesterov != 0;
  step.coefficients = coefficients;
  step.one_coefficient = one_coefficient != 0;
  step.skip = skip;
  step.candidate_scale = candidate_scale;
  step.indices = indices;
  step.values = values;
  step.reports = static_cast<DgcReport*>(reports);
  return step;
}

}  // namespace

void* syncline_dgc_create(const void* const* gradients, float* const* velocities,
                          float* const* residuals, const float* const* weights,
                          const int64_t* elements, const int64_t* kept, int64_t count,
                          int gradient_type) {
  std::vector<DgcTensor> tensors;
  for (int64_t i = 0; i < count; ++i) {
    tensors.push_back({gradients[i], velocities[i], residuals[i],
                       weights == nullptr ? nullptr : weights[i], elements[i], kept[i]});
  }
  DgcPlan plan;
  if (c_status(dgc_plan(tensors, static_cast<ElementType>(gradient_type), &plan)) != 0) {
    return nullptr;
  }
  return new DgcPlan(plan);
}

void syncline_dgc_destroy(void* plan) { delete static_cast<DgcPlan*>(plan); }

int64_t syncline_dgc_workspace_bytes(const void* plan) {
  return static_cast<int64_t>(dgc_of(plan).workspace_bytes);
}

int64_t syncline_dgc_packed(const void* plan) { return dgc_of(plan).packed; }

int64_t syncline_dgc_report_bytes(void) { return sizeof(DgcReport); }

int syncline_dgc_prepare(void* plan, void* workspace, int64_t workspace_bytes, void* stream) {
  return c_status(dgc_prepare(static_cast<DgcPlan*>(plan), workspace, bytes_of(workspace_bytes),
                              stream_of(stream)));
}

int syncline_dgc_inspect(const void* plan, float max_norm, void* stream) {
  return c_status(dgc_inspect(dgc_of(plan), {max_norm}, stream_of(stream)));
}

const float* syncline_dgc_coefficients(const void* plan) { return dgc_coefficients(dgc_of(plan)); }

const int32_t* syncline_dgc_skip_flag(const void* plan) { return dgc_skip_flag(dgc_of(plan)); }

int syncline_dgc_step(const void* plan, float momentum, float scale, float weight_decay,
                      int nesterov, const float* coefficients, int one_coefficient,
                      const int32_t* skip, float candidate_scale, uint32_t* indices, float* values,
                      void* reports, void* stream) {
  const DgcStep step = step_of(momentum, scale, weight_decay, nesterov, coefficients,
                               one_coefficient, skip, candidate_scale, indices, values, reports);
  return c_status(dgc_step(dgc_of(plan), step, stream_of(stream)));
}

int64_t syncline_sampled_workspace_bytes(const void* plan) {
  SampledPlan sampled;
  if (c_status(sampled_plan(dgc_of(plan), &sampled)) != 0) return -1;
  return static_cast<int64_t>(sampled.workspace_bytes);
}

int syncline_sampled_step(const void* plan, void* workspace, int64_t workspace_bytes,
                          float momentum, float scale, float weight_decay, int nesterov,
                          const float* coefficients, int one_coefficient, const int32_t* skip,
                          uint32_t* indices, float* values, void* reports, void* stream) {
  SampledPlan sampled;
  if (c_status(sampled_plan(dgc_of(plan), &sampled)) != 0) return 1;
  const DgcStep step = step_of(momentum, scale, weight_decay, nesterov, coefficients,
                               one_coefficient, skip, 0.0f, indices, values, reports);
  return c_status(sampled_step(dgc_of(plan), sampled, workspace, bytes_of(workspace_bytes), step,
                               stream_of(stream)));
}

void* syncline_sparse_create(float* const* weights, const int64_t* elements, const int64_t* places,
                             int64_t count) {
  std::vector<SparseTensor> tensors;
  for (int64_t i = 0; i < count; ++i) tensors.push_back({weights[i], elements[i], places[i]});
  SparsePlan plan;
  return c_status(sparse_plan(tensors, &plan)) != 0 ? nullptr : new SparsePlan(plan);
}

void syncline_sparse_destroy(void* plan) { delete static_cast<SparsePlan*>(plan); }

int64_t syncline_sparse_workspace_bytes(const void* plan) {
  return static_cast<int64_t>(sparse_of(plan).workspace_bytes);
}

int syncline_sparse_prepare(void* plan, void* workspace, int64_t workspace_bytes, void* stream) {
  return c_status(sparse_prepare(static_cast<SparsePlan*>(plan), workspace,
                                 bytes_of(workspace_bytes), stream_of(stream)));
}

int syncline_sparse_apply(const void* plan, int ranks, const uint32_t* indices, const float* values,
                          int64_t rank_stride, float rate, int rising, uint32_t* rejected,
                          void* stream) {
  const SparseApply apply{ranks, indices, values, rank_stride, rate, rejected, rising != 0};
  return c_status(sparse_apply(sparse_of(plan), apply, stream_of(stream)));
}
