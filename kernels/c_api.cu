#include "kernels/c_api.h"

#include <new>
#include <vector>

#include "kernels/batch_norm.h"
#include "kernels/busy.h"
#include "kernels/c_status.h"
#include "kernels/elementwise.h"
#include "kernels/pack.h"
#include "kernels/update.h"

using namespace syncline::kernels;

namespace {

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

// An unknown number passes through unchanged: the argument checks report it.
ElementType type_of(int type) { return static_cast<ElementType>(type); }

std::vector<PackedTensor> tensors_of(const void* const* from, void* const* to,
                                     const int64_t* elements, int64_t count) {
  std::vector<PackedTensor> tensors;
  for (int64_t i = 0; i < count; ++i) {
    tensors.push_back({from[i], to == nullptr ? nullptr : to[i], elements[i]});
  }
  return tensors;
}

BatchNorm norm_of(int type, int64_t rows, int32_t channels, int relu, float epsilon, const void* x,
                  const void* residual, const float* gamma, const float* beta, float* mean,
                  float* inverse_deviation, float* workspace) {
  BatchNorm norm;
  norm.type = type_of(type);
  norm.rows = rows;
  norm.channels = channels;
  norm.relu = relu != 0;
  norm.epsilon = epsilon;
  norm.x = x;
  norm.residual = residual;
  norm.gamma = gamma;
  norm.beta = beta;
  norm.mean = mean;
  norm.inverse_deviation = inverse_deviation;
  norm.workspace = workspace;
  return norm;
}

}  // namespace

const char* syncline_last_error(void) { return last_error_text().c_str(); }

int64_t syncline_measure_bytes(void) { return sizeof(GradientMeasure); }

int64_t syncline_state_bytes(void) { return sizeof(UpdateState); }

void syncline_initial_state(void* state) { new (state) UpdateState{}; }

int64_t syncline_pack_partials(const void* const* from, void* const* to, const int64_t* elements,
                               int64_t count, int from_type, int to_type) {
  PackOptions options;
  options.from = type_of(from_type);
  options.to = type_of(to_type);
  return pack_partials(tensors_of(from, to, elements, count), options);
}

int syncline_pack(const void* const* from, void* const* to, const int64_t* elements, int64_t count,
                  int from_type, int to_type, float scale, void* measure, double* partials,
                  float max_norm, void* stream) {
  PackOptions options;
  options.from = type_of(from_type);
  options.to = type_of(to_type);
  options.scale = scale;
  options.measure = static_cast<GradientMeasure*>(measure);
  options.partials = partials;
  options.max_norm = max_norm;
  return c_status(pack(tensors_of(from, to, elements, count), options, stream_of(stream)));
}

int syncline_update_sgd(float* weights, const void* gradients, int gradient_type, float* momentum,
                        void* bf16_copy, int64_t elements, double learning_rate,
                        double momentum_factor, double dampening, double weight_decay, int nesterov,
                        float unscale, const float* clip_coefficient, const int32_t* non_finite,
                        void* state, void* stream) {
  const FlatBucket bucket{weights,  gradients, type_of(gradient_type),
                          momentum, nullptr,   static_cast<Bf16*>(bf16_copy),
                          elements};
  const SgdOptions options{learning_rate, momentum_factor, dampening, weight_decay, nesterov != 0};
  return c_status(update_sgd(bucket, options, {unscale, clip_coefficient, non_finite},
                             static_cast<UpdateState*>(state), stream_of(stream)));
}

int syncline_update_adam(float* weights, const void* gradients, int gradient_type, float* mean,
                         float* variance, void* bf16_copy, int64_t elements, double learning_rate,
                         double beta1, double beta2, double epsilon, double weight_decay,
                         int decoupled, float unscale, const float* clip_coefficient,
                         const int32_t* non_finite, void* state, void* stream) {
  const FlatBucket bucket{weights, gradients, type_of(gradient_type),
                          mean,    variance,  static_cast<Bf16*>(bf16_copy),
                          elements};
  const AdamOptions options{learning_rate, beta1, beta2, epsilon, weight_decay, decoupled != 0};
  return c_status(update_adam(bucket, options, {unscale, clip_coefficient, non_finite},
                              static_cast<UpdateState*>(state), stream_of(stream)));
}

int syncline_add_activation(int type, int activation, const void* a, const void* b, void* y,
                            int64_t elements, void* stream) {
  const AddActivation inputs{type_of(type), static_cast<Activation>(activation), a, b, elements};
  return c_status(add_activation(inputs, y, stream_of(stream)));
}

int syncline_add_activation_gradient(int type, int activation, const void* a, const void* b,
                                     const void* dy, void* dz, int64_t elements, void* stream) {
  const AddActivation inputs{type_of(type), static_cast<Activation>(activation), a, b, elements};
  return c_status(add_activation_gradient(inputs, dy, dz, stream_of(stream)));
}

int64_t syncline_batch_norm_workspace(int64_t rows, int32_t channels) {
  return batch_norm_workspace(rows, channels);
}

int syncline_batch_norm_forward(int type, int64_t rows, int32_t channels, int relu, float epsilon,
                                const void* x, const void* residual, const float* gamma,
                                const float* beta, float* mean, float* inverse_deviation,
                                float* running_mean, float* running_variance,
                                float running_momentum, float* workspace, void* y, void* stream) {
  const auto norm = norm_of(type, rows, channels, relu, epsilon, x, residual, gamma, beta, mean,
                            inverse_deviation, workspace);
  return c_status(batch_norm_forward(norm, {running_mean, running_variance, running_momentum}, y,
                                     stream_of(stream)));
}

int syncline_batch_norm_backward(int type, int64_t rows, int32_t channels, int relu, float epsilon,
                                 const void* x, const void* residual, const float* gamma,
                                 const float* beta, float* mean, float* inverse_deviation,
                                 float* workspace, const void* dy, void* dx, void* dresidual,
                                 float* dgamma, float* dbeta, void* stream) {
  const auto norm = norm_of(type, rows, channels, relu, epsilon, x, residual, gamma, beta, mean,
                            inverse_deviation, workspace);
  return c_status(batch_norm_backward(norm, {dy, dx, dresidual, dgamma, dbeta}, stream_of(stream)));
}

int syncline_occupy(int blocks, int threads, double seconds, int exclusive, void* stream) {
  return c_status(occupy({blocks, threads, seconds, exclusive != 0}, stream_of(stream)));
}

int syncline_move_bytes(int blocks, double bytes_per_second, double seconds, void* buffer,
                        int64_t buffer_bytes, unsigned long long* moved, void* stream) {
  return c_status(move_bytes({blocks, bytes_per_second, seconds, buffer, buffer_bytes, moved},
                             stream_of(stream)));
}
