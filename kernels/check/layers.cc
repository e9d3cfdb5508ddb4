// Checks addition and activation, and batch normalisation, against the host reference in double.

#include "kernels/reference/layers.h"
#include "kernels/batch_norm.h"
#include "kernels/check/check.h"
#include "kernels/kernels.h"

namespace syncline::kernels {
namespace {

Nonlinearity twin_of(Activation activation) {
  return activation == Activation::kRelu   ? Nonlinearity::kRelu
         : activation == Activation::kGelu ? Nonlinearity::kGelu
                                           : Nonlinearity::kNone;
}

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
    const double expected = activate(twin_of(activation), z);
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
              worst.passes() && intact, worst.text() + (intact ? "" : ", a canary died"));
}

struct NormShape {
  std::size_t rows, channels;
  bool residual, relu;
  int offset;           // offset of x, residual and gradients
  float centre = 0.5f;  // mean of x
};

// One forward and one backward pass: arrays on the GPU, and the reference's values.
template <typename T>
class NormCase {
 public:
  explicit NormCase(const NormShape& shape) : shape_(shape) {
    norm_.type = kElementType<T>;
    norm_.rows = static_cast<std::int64_t>(shape.rows);
    norm_.channels = static_cast<std::int32_t>(shape.channels);
    norm_.relu = shape.relu;
    norm_.x = device_x_.data();
    norm_.residual = shape.residual ? device_added_.data() : nullptr;
    norm_.gamma = device_gamma_.data();
    norm_.beta = device_beta_.data();
    norm_.mean = mean_.data();
    norm_.inverse_deviation = inverse_.data();
    norm_.workspace = workspace_.data();
  }

  void run() {
    require(batch_norm_forward(norm_, y_.data(), nullptr));
    require(batch_norm_backward(
        norm_,
        {device_dy_.data(), dx_.data(), shape_.residual ? dresidual_.data() : nullptr,
         dgamma_.data(), dbeta_.data()},
        nullptr));
    wait_for_gpu();
  }

  void compare(Checks& checks) {
    const NormedPlane plane = twin();
    const auto expected = batch_norm(plane);
    const auto back = batch_norm_gradients(plane, doubles_of(dy_));
    Worst worst;
    const auto slack = compare_channels(plane, expected, back, worst);
    compare_elements(plane, expected, back, slack, worst);
    checks.line(name(), worst.passes() && intact(),
                worst.text() + (intact() ? "" : ", a canary died"));
  }

 private:
  NormedPlane twin() const {
    NormedPlane plane;
    plane.channels = shape_.channels;
    plane.x = doubles_of(x_);
    if (shape_.residual) plane.residual = doubles_of(added_);
    plane.gamma = doubles_of(gamma_);
    plane.beta = doubles_of(beta_);
    plane.epsilon = static_cast<double>(norm_.epsilon);
    plane.activation = shape_.relu ? Nonlinearity::kRelu : Nonlinearity::kNone;
    return plane;
  }

  // Compares the values per channel. Returns the allowed error of the activation's input.
  std::vector<double> compare_channels(const NormedPlane& plane, const NormedOutput& expected,
                                       const NormedGradients& back, Worst& worst) {
    const auto got_mean = mean_.get();
    const auto got_inverse = inverse_.get();
    const auto got_dgamma = dgamma_.get();
    const auto got_dbeta = dbeta_.get();
    const double root = std::sqrt(static_cast<double>(shape_.rows));
    std::vector<double> slack(shape_.channels);
    for (std::size_t c = 0; c < shape_.channels; ++c) {
      const double deviation = std::sqrt(expected.variance[c] + plane.epsilon);
      const double far = std::fabs(expected.mean[c]) + deviation;
      worst.take(got_mean[c], expected.mean[c], 1e-6 * far);
      worst.take(got_inverse[c] * deviation, 1, 2e-5);
      worst.take(got_dbeta[c], back.dbeta[c], 2e-5 * root + 1e-5);
      worst.take(got_dgamma[c], back.dgamma[c], 1e-4 * root + 1e-4);
      slack[c] = (1 + std::fabs(plane.gamma[c])) * (1e-5 + 1e-6 * std::fabs(expected.mean[c]));
    }
    return slack;
  }

  void compare_elements(NormedPlane plane, const NormedOutput& expected,
                        const NormedGradients& back, const std::vector<double>& slack,
                        Worst& worst) {
    plane.activation = Nonlinearity::kNone;
    const auto z = batch_norm(plane).y;
    const auto got_inverse = inverse_.get();
    const auto got_y = y_.get();
    const auto got_dx = dx_.get();
    const auto got_dresidual = dresidual_.get();
    for (std::size_t i = 0; i < z.size(); ++i) {
      const std::size_t c = i % shape_.channels;
      worst.take(to_float(got_y[i]), expected.y[i], 2 * half_step<T>(expected.y[i]) + slack[c]);
      // If z is close to 0, the relu may have cut differently.
      if (shape_.relu && std::fabs(z[i]) < slack[c]) continue;
      const double scale = std::fabs(plane.gamma[c] * got_inverse[c]) + 1;
      worst.take(to_float(got_dx[i]), back.dx[i], 2 * half_step<T>(back.dx[i]) + 2e-4 * scale);
      if (shape_.residual) {
        worst.take(to_float(got_dresidual[i]), back.dresidual[i],
                   half_step<T>(back.dresidual[i]) + 1e-30);
      }
    }
  }

  bool intact() {
    return device_x_.intact() && device_added_.intact() && device_dy_.intact() && y_.intact() &&
           dx_.intact() && dresidual_.intact() && mean_.intact() && inverse_.intact() &&
           dgamma_.intact() && dbeta_.intact() && workspace_.intact();
  }

  std::string name() const {
    return std::string("batch norm") + (shape_.residual ? " + add" : "") +
           (shape_.relu ? " + relu" : "") + " " + name_of(norm_.type) + " " +
           std::to_string(shape_.rows) + " x " + std::to_string(shape_.channels) + " at offset " +
           std::to_string(shape_.offset);
  }

  const NormShape shape_;
  const std::size_t size_ = shape_.rows * shape_.channels;
  const std::vector<T> x_ = random_elements<T>(size_, 1, shape_.centre);
  const std::vector<T> added_ = random_elements<T>(size_, 2);
  const std::vector<T> dy_ = random_elements<T>(size_, 3);
  const std::vector<float> gamma_ = random_elements<float>(shape_.channels, 4, 1);
  const std::vector<float> beta_ = random_elements<float>(shape_.channels, 5);
  DeviceArray<T> device_x_{x_, shape_.offset};
  DeviceArray<T> device_added_{added_, shape_.offset};
  DeviceArray<T> device_dy_{dy_, shape_.offset};
  DeviceArray<T> y_{size_, shape_.offset};
  DeviceArray<T> dx_{size_, shape_.offset};
  DeviceArray<T> dresidual_{size_, shape_.offset};
  DeviceArray<float> device_gamma_{gamma_};
  DeviceArray<float> device_beta_{beta_};
  DeviceArray<float> mean_{shape_.channels};
  DeviceArray<float> inverse_{shape_.channels};
  DeviceArray<float> dgamma_{shape_.channels};
  DeviceArray<float> dbeta_{shape_.channels};
  DeviceArray<float> workspace_{static_cast<std::size_t>(batch_norm_workspace(
      static_cast<std::int64_t>(shape_.rows), static_cast<std::int32_t>(shape_.channels)))};
  BatchNorm norm_;
};

template <typename T>
void check_norm(Checks& checks, const NormShape& shape) {
  NormCase<T> one(shape);
  one.run();
  one.compare(checks);
}

template <typename T>
void check_type(Checks& checks) {
  for (const auto activation : {Activation::kIdentity, Activation::kRelu, Activation::kGelu}) {
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{4095}, std::size_t{4096},
          std::size_t{4097}, checks.size(kBusy, 9001)}) {
      check_add<T>(checks, activation, size, 0, 0, 0);
      check_add<T>(checks, activation, size, 3, 3, 3);
      check_add<T>(checks, activation, size, 1, 2, 3);
    }
  }
  for (const bool residual : {false, true}) {
    for (const bool relu : {false, true}) {
      for (const std::size_t rows : {std::size_t{2}, std::size_t{33}, std::size_t{128},
                                     std::size_t{129}, checks.size(1000, 300)}) {
        for (const std::size_t channels :
             {std::size_t{3}, std::size_t{64}, std::size_t{72}, checks.size(2048, 264)}) {
          check_norm<T>(checks, {rows, channels, residual, relu, 0});
        }
      }
      check_norm<T>(checks, {500, 64, residual, relu, 1});
      // 56 x 56 of 16 images.
      if (relu)
        check_norm<T>(checks, {checks.size(50176, 70001), checks.size(64, 8), residual, relu, 0});
    }
  }
}

// Checks that relu's gradient also works from its output, and that a NaN stays one.
void check_relu(Checks& checks) {
  auto a = random_elements<float>(5000, 1);
  const auto dy = random_elements<float>(5000, 3);
  DeviceArray<float> z(a), gradient(dy), back(a.size()), from_output(a.size());
  const auto of = [&](DeviceArray<float>& array) {
    return AddActivation{ElementType::kFp32, Activation::kRelu, array.data(), nullptr, 5000};
  };
  require(add_activation_gradient(of(z), gradient.data(), back.data(), nullptr));
  require(add_activation(of(z), z.data(), nullptr));
  require(add_activation_gradient(of(z), gradient.data(), from_output.data(), nullptr));
  wait_for_gpu();
  checks.line("relu back from its output", different(back.get(), from_output.get()) == 0);
  a.assign(5000, std::nanf(""));
  z.put(a);
  require(add_activation(of(z), z.data(), nullptr));
  wait_for_gpu();
  checks.line("relu leaves a NaN", different(z.get(), a) == 0);
}

}  // namespace

void check_layers(Checks& checks) {
  check_type<float>(checks);
  check_type<Bf16>(checks);
  check_type<Fp16>(checks);
  check_norm<float>(checks, {checks.size(5000, 500), 64, false, false, 0, 1000.0f});
  check_norm<float>(checks, {1, 64, true, true, 0});
  check_relu(checks);
}

}  // namespace syncline::kernels
