/* A linear layer's products (gemm_epilogue.h) for callers that are not C++, as in c_api.h: 0, or 1
 * and a text that syncline_last_error() tells. Types of elements: 0 fp32, 1 bf16, 2 fp16;
 * activations: 0 none, 1 relu, 2 gelu. Workspace: device memory at a multiple of 256 bytes, or null
 * and 0.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t syncline_gemm_workspace_bytes(void);

/* What the forward pass keeps, for y[rows][columns]. */
int64_t syncline_linear_aux_bytes(int type, int activation, int64_t rows, int64_t columns);

/* aux null: nothing is kept. */
int syncline_linear_forward(int type, int activation, int64_t rows, int64_t inputs, int64_t outputs,
                            const void* x, const void* w, const void* b, void* y, void* aux,
                            void* workspace, int64_t workspace_bytes, void* stream);
/* activation, aux: of the layer before. db null: not wanted. */
int syncline_linear_input_gradient(int type, int activation, int64_t rows, int64_t inputs,
                                   int64_t outputs, const void* dy, const void* w, const void* aux,
                                   void* dz, void* db, void* workspace, int64_t workspace_bytes,
                                   void* stream);
int syncline_linear_weight_gradient(int type, int64_t rows, int64_t inputs, int64_t outputs,
                                    const void* dy, const void* x, void* dw, void* db,
                                    void* workspace, int64_t workspace_bytes, void* stream);

#ifdef __cplusplus
}
#endif
