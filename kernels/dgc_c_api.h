/* DGC's kernels for callers that are not C++, as in c_api.h: 0, or 1 and a text that
 * syncline_last_error() tells; what gives a pointer or a size gives null or -1 then. What the
 * arguments mean stands in dgc_step.h, sampled_threshold.h and sparse_apply.h.
 *
 * A plan holds addresses, so it lives as long as they are good; create it once for a list of
 * tensors and `kept`, prepare it, step it, destroy it. All arrays named here are on the host, but
 * for what they point to.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* gradient_type: 0 fp32, 1 bf16, 2 fp16. weights: null where there is no weight decay. */
void* syncline_dgc_create(const void* const* gradients, float* const* velocities,
                          float* const* residuals, const float* const* weights,
                          const int64_t* elements, const int64_t* kept, int64_t count,
                          int gradient_type);
void syncline_dgc_destroy(void* plan);
int64_t syncline_dgc_workspace_bytes(const void* plan);
int64_t syncline_dgc_packed(const void* plan); /* elements of indices and values */
int64_t syncline_dgc_report_bytes(void); /* of one tensor: uint32 selected, held, threshold, path */
int syncline_dgc_prepare(void* plan, void* workspace, int64_t workspace_bytes, void* stream);

/* Afterwards the coefficients (one a tensor) and the skip flag, on the device. */
int syncline_dgc_inspect(const void* plan, float max_norm, void* stream);
const float* syncline_dgc_coefficients(const void* plan);
const int32_t* syncline_dgc_skip_flag(const void* plan);

/* coefficients, skip: on the device, or null. candidate_scale: 0.95, or 0 for the exact path. */
int syncline_dgc_step(const void* plan, float momentum, float scale, float weight_decay,
                      int nesterov, const float* coefficients, int one_coefficient,
                      const int32_t* skip, float candidate_scale, uint32_t* indices, float* values,
                      void* reports, void* stream);

int64_t syncline_sampled_workspace_bytes(const void* plan);
int syncline_sampled_step(const void* plan, void* workspace, int64_t workspace_bytes,
                          float momentum, float scale, float weight_decay, int nesterov,
                          const float* coefficients, int one_coefficient, const int32_t* skip,
                          uint32_t* indices, float* values, void* reports, void* stream);

void* syncline_sparse_create(float* const* weights, const int64_t* elements, const int64_t* places,
                             int64_t count);
void syncline_sparse_destroy(void* plan);
int64_t syncline_sparse_workspace_bytes(const void* plan);
int syncline_sparse_prepare(void* plan, void* workspace, int64_t workspace_bytes, void* stream);
int syncline_sparse_apply(const void* plan, int ranks, const uint32_t* indices, const float* values,
                          int64_t rank_stride, float rate, int rising, uint32_t* rejected,
                          void* stream);

#ifdef __cplusplus
}
#endif
