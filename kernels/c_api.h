/* The kernels for callers that are not C++: Python's ctypes on a tensor's data_ptr(), say. Every
 * function gives 0, or 1 and a text that syncline_last_error() tells (of the calling thread, until
 * its next call). Types of elements: 0 fp32, 1 bf16, 2 fp16; activations: 0 none, 1 relu, 2 gelu.
 * `stream` is a cudaStream_t. What the arguments mean stands in pack.h, update.h, elementwise.h,
 * batch_norm.h and busy.h; sizes in memory of the two structs are asked for, not assumed.
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

const char* syncline_last_error(void);

/* GradientMeasure: double sum_of_squares, float norm, float clip_coefficient, int32 non_finite,
 * uint32 ticket. In device memory, zeroed before its first use. */
int64_t syncline_measure_bytes(void);

/* UpdateState: int64 steps, int64 skipped, double beta1_power, double beta2_power, uint32 ticket.
 * syncline_initial_state writes the one before the first step to `state` on the host. */
int64_t syncline_state_bytes(void);
void syncline_initial_state(void* state);

/* from, to and elements are arrays of `count` on the host; `to` null: only measured. */
int64_t syncline_pack_partials(const void* const* from, void* const* to, const int64_t* elements,
                               int64_t count, int from_type, int to_type);
int syncline_pack(const void* const* from, void* const* to, const int64_t* elements, int64_t count,
                  int from_type, int to_type, float scale, void* measure, double* partials,
                  float max_norm, void* stream);

int syncline_update_sgd(float* weights, const void* gradients, int gradient_type, float* momentum,
                        void* bf16_copy, int64_t elements, double learning_rate,
                        double momentum_factor, double dampening, double weight_decay, int nesterov,
                        float unscale, const float* clip_coefficient, const int32_t* non_finite,
                        void* state, void* stream);
int syncline_update_adam(float* weights, const void* gradients, int gradient_type, float* mean,
                         float* variance, void* bf16_copy, int64_t elements, double learning_rate,
                         double beta1, double beta2, double epsilon, double weight_decay,
                         int decoupled, float unscale, const float* clip_coefficient,
                         const int32_t* non_finite, void* state, void* stream);

/* b null: none. */
int syncline_add_activation(int type, int activation, const void* a, const void* b, void* y,
                            int64_t elements, void* stream);
int syncline_add_activation_gradient(int type, int activation, const void* a, const void* b,
                                     const void* dy, void* dz, int64_t elements, void* stream);

int64_t syncline_batch_norm_workspace(int64_t rows, int32_t channels); /* in floats */
int syncline_batch_norm_forward(int type, int64_t rows, int32_t channels, int relu, float epsilon,
                                const void* x, const void* residual, const float* gamma,
                                const float* beta, float* mean, float* inverse_deviation,
                                float* running_mean, float* running_variance,
                                float running_momentum, float* workspace, void* y, void* stream);
int syncline_batch_norm_backward(int type, int64_t rows, int32_t channels, int relu, float epsilon,
                                 const void* x, const void* residual, const float* gamma,
                                 const float* beta, float* mean, float* inverse_deviation,
                                 float* workspace, const void* dy, void* dx, void* dresidual,
                                 float* dgamma, float* dbeta, void* stream);

int syncline_occupy(int blocks, int threads, double seconds, int exclusive, void* stream);
int syncline_move_bytes(int blocks, double bytes_per_second, double seconds, void* buffer,
                        int64_t buffer_bytes, unsigned long long* moved, void* stream);

#ifdef __cplusplus
}
#endif
