// Addition and activation, and batch normalisation, on the GPU against the host twins in double.

#include "kernels/batch_norm.h"
#include "kernels/check/check.cuh"
#include "kernels/elementwise.h"
#include "kernels/reference/batch_norm.h"

namespace syncline {
namespace {

Nonlinearity twin_of(Activation activation) {
  return activation == Activation::kRelu   ? Nonlinearity::kRelu
         : activation == Activation::kGelu ? Nonlinearity::kGelu
                                           : Nonlinearity::kNone;
}

// The largest error in units of what is allowed; 1 and less passes, and a NaN does not.
struct Worst {
  double ratio = 0;
  bool nan = false;

  void take(double got, double expected, double allowed) {
    const double now = std::fabs(got - expected) / allowed;
    if (!(now >= 0)) nan = true;
    if (now > ratio) ratio = now;
  }
  bool passed() const { return !nan && ratio <= 1; }
  std::string text() const {
    return (nan ? std::string("NaN") : std::to_string(ratio)) + " of the error allowed";
  }
};

template <typename T>
void check_add(Checks& checks, Activation activation, std::size_t size, int a_offset, int b_offset,
               int out_offset) {
  const auto a = random_elements<T>(size, 1);
  const auto b = random_elements<T>(size, 2);
  const auto dy = random_elements<T>(size, 3);
  DeviceArray<T> device_a(a, a_offset);
  DeviceArray<T> device_b(b, b_offset);
  DeviceArray<T> device_dy(dy, b_offset);
  DeviceArray<T> y(size, out_offset);
  DeviceArray<T> dz(size, out_offset);
  const AddActivation inputs{kElementType<T>, activation, device_a.data(), device_b.data(),
                             static_cast<std::int64_t>(size)};
  require(add_activation(inputs, y.data(), nullptr));
  require(add_activation_gradient(inputs, device_dy.data(), dz.data(), nullptr));
  wait_for_gpu();
  const auto got_y = y.get();
  const auto got_dz = dz.get();
  const bool gelu = activation == Activation::kGelu;
  Worst worst;
  for (std::size_t i = 0; i < size; ++i) {
    const double z = to_float(a[i]) + to_float(b[i]);
    const double gradient = to_float(dy[i]);
    const double expected = activated(twin_of(activation), z);
    const double back = gradient * activation_slope(twin_of(activation), z);
    const double loose = gelu ? 1e-6 * (1 + std::fabs(z)) : 0;
    worst.take(to_float(got_y[i]), expected, half_step<T>(expected) * 1.001 + loose + 1e-30);
    worst.take(to_float(got_dz[i]), back,
               half_step<T>(back) * 1.001 + 2 * loose * std::fabs(gradient) + 1e-30);
  }
  const bool intact =
      device_a.intact() && device_b.intact() && device_dy.intact() && y.intact() && dz.intact();
  const char* name = gelu ? "gelu" : activation == Activation::kRelu ? "relu" : "add";
  checks.line(std::string(name) + " " + name_of(kElementType<T>) + " " + std::to_string(size) +
                  " elements at offsets " + std::to_string(a_offset) + std::to_string(b_offset) +
                  std::to_string(out_offset),
              worst.passed() && intact, worst.text() + (intact ? "" : ", a canary died"));
}

std::vector<double> doubles_of(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

template <typename T>
void check_norm(Checks& checks, std::size_t rows, std::size_t channels, bool residual, bool relu,
                int offset, float centre = 0.5f) {
  const std::size_t size = rows * channels;
  const auto x = random_elements<T>(size, 1, centre);
  const auto added = random_elements<T>(size, 2);
  const auto dy = random_elements<T>(size, 3);
  const auto gamma = random_elements<float>(channels, 4, 1);
  const auto beta = random_elements<float>(channels, 5);
  DeviceArray<T> device_x(x, offset), device_added(added, offset), device_dy(dy, offset);
  DeviceArray<T> y(size, offset), dx(size, offset), dresidual(size, offset);
  DeviceArray<float> device_gamma(gamma), device_beta(beta), mean(channels), inverse(channels);
  DeviceArray<float> dgamma(channels), dbeta(channels);
  DeviceArray<float> running_mean(std::vector<float>(channels, 2.0f));
  DeviceArray<float> running_variance(std::vector<float>(channels, 3.0f));
  BatchNorm norm;
  norm.type = kElementType<T>;
  norm.rows = static_cast<std::int64_t>(rows);
  norm.channels = static_cast<std::int32_t>(channels);
  norm.relu = relu;
  norm.x = device_x.data();
  norm.residual = residual ? device_added.data() : nullptr;
  norm.gamma = device_gamma.data();
  norm.beta = device_beta.data();
  norm.mean = mean.data();
  norm.inverse_deviation = inverse.data();
  DeviceArray<float> workspace(
      static_cast<std::size_t>(batch_norm_workspace(norm.rows, norm.channels)));
  norm.workspace = workspace.data();
  require(batch_norm_forward(norm, {running_mean.data(), running_variance.data(), 0.25f}, y.data(),
                             nullptr));
  require(batch_norm_backward(norm,
                              {device_dy.data(), dx.data(), residual ? dresidual.data() : nullptr,
                               dgamma.data(), dbeta.data()},
                              nullptr));
  wait_for_gpu();

  NormedPlane plane;
  plane.channels = channels;
  plane.x = doubles_of(floats_of(x));
  if (residual) plane.residual = doubles_of(floats_of(added));
  plane.gamma = doubles_of(gamma);
  plane.beta = doubles_of(beta);
  plane.epsilon = static_cast<double>(norm.epsilon);
  plane.activation = relu ? Nonlinearity::kRelu : Nonlinearity::kNone;
  const auto expected = batch_norm(plane);
  const auto back = batch_norm_gradients(plane, doubles_of(floats_of(dy)));
  plane.activation = Nonlinearity::kNone;
  const auto z = batch_norm(plane).y;

  Worst worst;
  const auto got_mean = mean.get();
  const auto got_inverse = inverse.get();
  const auto got_running = running_mean.get();
  const auto got_dgamma = dgamma.get();
  const auto got_dbeta = dbeta.get();
  const double root = std::sqrt(static_cast<double>(rows));
  std::vector<double> slack(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const double deviation = std::sqrt(expected.variance[c] + plane.epsilon);
    const double far = std::fabs(expected.mean[c]) + deviation;
    worst.take(got_mean[c], expected.mean[c], 1e-6 * far);
    worst.take(got_inverse[c] * deviation, 1, 2e-5);
    worst.take(got_running[c], 1.5 + 0.25 * expected.mean[c], 1e-6 * (2 + far));
    worst.take(got_dbeta[c], back.dbeta[c], 2e-5 * root + 1e-5);
    worst.take(got_dgamma[c], back.dgamma[c], 1e-4 * root + 1e-4);
    slack[c] = (1 + std::fabs(plane.gamma[c])) * (1e-5 + 1e-6 * std::fabs(expected.mean[c]));
  }
  const auto got_y = y.get();
  const auto got_dx = dx.get();
  const auto got_dresidual = dresidual.get();
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t c = i % channels;
    worst.take(to_float(got_y[i]), expected.y[i], 2 * half_step<T>(expected.y[i]) + slack[c]);
    // Where z is a hair from 0 the relu may have cut differently.
    if (relu && std::fabs(z[i]) < slack[c]) continue;
    const double scale = std::fabs(plane.gamma[c] * got_inverse[c]) + 1;
    worst.take(to_float(got_dx[i]), back.dx[i], 2 * half_step<T>(back.dx[i]) + 2e-4 * scale);
    if (residual) {
      worst.take(to_float(got_dresidual[i]), back.dresidual[i],
                 half_step<T>(back.dresidual[i]) + 1e-30);
    }
  }
  const bool intact = device_x.intact() && device_added.intact() && device_dy.intact() &&
                      y.intact() && dx.intact() && dresidual.intact() && mean.intact() &&
                      inverse.intact() && dgamma.intact() && dbeta.intact() && workspace.intact() &&
                      running_mean.intact() && running_variance.intact();
  checks.line(std::string("batch norm") + (residual ? " + add" : "") + (relu ? " + relu" : "") +
                  " " + name_of(norm.type) + " " + std::to_string(rows) + " x " +
                  std::to_string(channels) + " at offset " + std::to_string(offset),
              worst.passed() && intact, worst.text() + (intact ? "" : ", a canary died"));
}

template <typename T>
void check_type(Checks& checks) {
  for (const auto activation : {Activation::kIdentity, Activation::kRelu, Activation::kGelu}) {
    for (const std::size_t size : {0, 1, 3, 4095, 4096, 4097, 1000003}) {
      check_add<T>(checks, activation, size, 0, 0, 0);
      check_add<T>(checks, activation, size, 3, 3, 3);
      check_add<T>(checks, activation, size, 1, 2, 3);
    }
  }
  for (const bool residual : {false, true}) {
    for (const bool relu : {false, true}) {
      for (const std::size_t rows : {2, 33, 128, 129, 5000}) {
        for (const std::size_t channels : {3, 64, 72, 2048}) {
          check_norm<T>(checks, rows, channels, residual, relu, 0);
        }
      }
      check_norm<T>(checks, 500, 64, residual, relu, 1);
      // 56 x 56 of 64 images.
      if (relu) check_norm<T>(checks, 200704, 64, residual, relu, 0);
    }
  }
}

}  // namespace
}  // namespace syncline

int main() {
  using namespace syncline;
  Checks checks("elementwise");
  check_type<float>(checks);
  check_type<Bf16>(checks);
  check_type<Fp16>(checks);
  check_norm<float>(checks, 5000, 64, false, false, 0, 1000.0f);
  return checks.result();
}
