// Products with cublasLt's epilogues against the host reference in double.

#include "kernels/check/check.h"
#include "kernels/gemm_epilogue.h"
#include "kernels/reference/layers.h"

namespace syncline::kernels {
namespace {

struct Sizes {
  std::size_t rows, inputs, hidden, outputs;
};

const char* name_of(Activation activation) {
  return activation == Activation::kRelu   ? "relu"
         : activation == Activation::kGelu ? "gelu"
                                           : "none";
}

Nonlinearity twin_of(Activation activation) {
  return activation == Activation::kRelu   ? Nonlinearity::kRelu
         : activation == Activation::kGelu ? Nonlinearity::kGeluTanh
                                           : Nonlinearity::kNone;
}

std::vector<double> magnitudes(std::vector<double> values) {
  for (auto& value : values) value = std::fabs(value);
  return values;
}

// Returns the allowed error of an element: `terms` fp32 roundings of the sum of magnitudes in any
// order, the epilogue's own functions, and a partial sum rounded to the matrices' format, as
// cublasLt did on an H200 for rows at any address.
template <typename T>
double slack(double magnitude, std::size_t terms) {
  return static_cast<double>(terms + 4) * 0x1p-24 * magnitude + 2e-3 * 0x1p-8 * (1 + magnitude) +
         half_step<T>(magnitude);
}

// The allowed error of a gelu and its slope: tanh is the GPU's own instruction (tanh.approx.f32,
// within 2^-11 of the value by CUDA's PTX manual).
constexpr double kTanh = 0x1p-11;
double gelu_slack(double z) { return kTanh / 2 * std::fabs(z); }
double gelu_slope_slack(double z) {
  const double steep = 0.8 * (1 + 0.134145 * z * z);  // slope of tanh's argument in z
  return kTanh / 2 * (1 + 2 * std::fabs(z) * steep);
}

// One case of the program. cublasLt may refuse it only if the arrays are not aligned or there is no
// workspace, which it need not support.
class Case {
 public:
  Case(Checks& checks, std::string name, bool aligned)
      : checks_(checks), name_(std::move(name)), aligned_(aligned) {}

  // Returns true if the results can be compared.
  bool done(const char* product, const Status& status) {
    if (status.ok()) {
      wait_for_gpu();
      return true;
    }
    const bool refused = status.text.find("no kernel of cublasLt") != std::string::npos;
    checks_.line(name_ + " " + product, refused && !aligned_,
                 refused && !aligned_ ? "cublasLt has no kernel for it" : status.text);
    return false;
  }
  void judge(const char* product, const Worst& worst, bool intact) {
    checks_.line(name_ + " " + product, worst.passes() && intact,
                 worst.text() + (intact ? "" : ", a canary died"));
  }

 private:
  Checks& checks_;
  std::string name_;
  bool aligned_;
};

// A layer with its activation and the next layer: arrays on the GPU, and the reference's values.
// Magnitudes go through the reference too: they bound the rounding errors.
template <typename T>
class Network {
 public:
  Network(Checks& checks, Activation activation, const Sizes& n, int offset,
          std::size_t workspace_bytes)
      : activation_(activation),
        n_(n),
        offset_(offset),
        workspace_(workspace_bytes),
        scratch_{workspace_bytes == 0 ? nullptr : workspace_.data(), workspace_bytes},
        case_(checks, name(workspace_bytes),
              workspace_bytes > 0 && offset == 0 && n.inputs % 8 == 0 && n.hidden % 8 == 0 &&
                  n.outputs % 8 == 0) {}

  void check() {
    if (!check_forward()) return;
    check_input_gradient();
    check_weight_gradient();
  }

 private:
  std::string name(std::size_t workspace_bytes) const {
    return std::string(name_of(activation_)) + " " + name_of(kElementType<T>) + " " +
           std::to_string(n_.rows) + " rows " + std::to_string(n_.inputs) + " -> " +
           std::to_string(n_.hidden) + " -> " + std::to_string(n_.outputs) + ", offset " +
           std::to_string(offset_) + ", workspace " + std::to_string(workspace_bytes);
  }

  LinearShape shape(std::size_t inputs, std::size_t outputs) const {
    return {kElementType<T>, activation_, static_cast<std::int64_t>(n_.rows),
            static_cast<std::int64_t>(inputs), static_cast<std::int64_t>(outputs)};
  }

  bool activates() const { return activation_ != Activation::kIdentity; }
  void* kept() { return activates() ? aux_.data() : nullptr; }
  bool shared_intact() { return aux_.intact() && workspace_.intact(); }

  // Returns the allowed error of z, the activation's input.
  double z_slack(std::size_t i) const { return 1.2 * slack<T>(size_[i], n_.inputs); }

  // Checks y without the auxiliary matrix, and with it. Returns false if a result is missing.
  bool check_forward() {
    const LinearForward arrays{device_x_.data(), device_w_.data(), device_b_.data(),
                               without_aux_.data(), nullptr};
    if (case_.done("forward", linear_forward(first_, arrays, scratch_, nullptr))) {
      compare_forward("forward", without_aux_);
    }
    LinearForward keeping = arrays;
    keeping.y = h_.data();
    keeping.aux = kept();
    if (!case_.done("forward, kept", linear_forward(first_, keeping, scratch_, nullptr))) {
      return false;
    }
    compare_forward("forward, kept", h_);
    return true;
  }

  void compare_forward(const char* product, DeviceArray<T>& array) {
    const auto got = array.get();
    const bool gelu = activation_ == Activation::kGelu;
    Worst worst;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double tanh = gelu ? gelu_slack(expected_.z[i]) : 0;
      worst.take(to_float(got[i]), expected_.y[i],
                 z_slack(i) + tanh + 2 * half_step<T>(expected_.y[i]));
    }
    case_.judge(product, worst, array.intact() && shared_intact());
  }

  // The gradient of the first layer's z: the second layer's dy times w2 and the slope at z.
  struct InputGradient {
    LinearGradient expected;
    std::vector<double> allowed;       // each element's
    std::vector<double> allowed_sums;  // the bias gradient's
  };

  InputGradient expected_input_gradient() const {
    const LinearLayer behind{n_.rows, n_.hidden, n_.outputs, {}, doubles_of(w2_), {}};
    const LinearLayer sizes{n_.rows, n_.hidden, n_.outputs, {}, magnitudes(behind.w), {}};
    const auto dy = doubles_of(dy_);
    InputGradient gradient;
    gradient.expected = linear_gradient_before(behind, dy, twin_of(activation_), expected_.z);
    const auto size =
        linear_gradient_before(sizes, magnitudes(dy), Nonlinearity::kNone, expected_.z).values;
    gradient.allowed.resize(size.size());
    gradient.allowed_sums.resize(n_.hidden);
    for (std::size_t i = 0; i < size.size(); ++i) {
      const double z_error = z_slack(i) + 2 * half_step<T>(expected_.z[i]);
      // A relu close to 0 may have cut differently; a gelu's slope moves with z, by at most 0.8
      // times its error.
      const bool torn = activation_ == Activation::kRelu && std::fabs(expected_.z[i]) <= z_error;
      const bool gelu = activation_ == Activation::kGelu;
      const double moved = gelu ? z_error + gelu_slope_slack(expected_.z[i]) : torn ? 1 : 0;
      const double value = gradient.expected.values[i];
      gradient.allowed[i] = 1.2 * slack<T>(size[i], n_.outputs) + size[i] * moved;
      double& sum = gradient.allowed_sums[i % n_.hidden];
      sum += gradient.allowed[i] + half_step<T>(value);
      sum += slack<T>(std::fabs(value), n_.rows);
    }
    return gradient;
  }

  void check_input_gradient() {
    const InputGradient gradient = expected_input_gradient();
    const LinearInputGradient arrays{device_dy_.data(), device_w2_.data(), kept(), dz_alone_.data(),
                                     nullptr};
    if (case_.done("input gradient", linear_input_gradient(second_, arrays, scratch_, nullptr))) {
      compare_input_gradient("input gradient", gradient, dz_alone_, false);
    }
    if (!activates()) return;
    LinearInputGradient with_sums = arrays;
    with_sums.dz = dz_.data();
    with_sums.db = db_.data();
    if (case_.done("input and bias gradient",
                   linear_input_gradient(second_, with_sums, scratch_, nullptr))) {
      compare_input_gradient("input and bias gradient", gradient, dz_, true);
    }
  }

  void compare_input_gradient(const char* product, const InputGradient& gradient,
                              DeviceArray<T>& array, bool sums) {
    const auto& expected = gradient.expected;
    const auto got = array.get();
    Worst worst;
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst.take(to_float(got[i]), expected.values[i],
                 gradient.allowed[i] + 2 * half_step<T>(expected.values[i]) + 1e-30);
    }
    if (sums) {
      const auto got_sums = db_.get();
      for (std::size_t c = 0; c < n_.hidden; ++c) {
        worst.take(to_float(got_sums[c]), expected.bias[c],
                   gradient.allowed_sums[c] + 2 * half_step<T>(expected.bias[c]));
      }
    }
    case_.judge(product, worst, array.intact() && db_.intact() && shared_intact());
  }

  // Checks the first layer's weight gradient, with random values as h's gradient.
  void check_weight_gradient() {
    const auto dh = random_elements<T>(n_.rows * n_.hidden, 6);
    DeviceArray<T> device_dh(dh, offset_);
    const LinearWeightGradient arrays{device_dh.data(), device_x_.data(), dw_.data(),
                                      db_too_.data()};
    if (!case_.done("weight and bias gradient",
                    linear_weight_gradient(first_, arrays, scratch_, nullptr))) {
      return;
    }
    const auto expected = linear_gradient_of_weights(twin_, doubles_of(dh));
    const auto size = linear_gradient_of_weights(sizes_, magnitudes(doubles_of(dh)));
    Worst worst;
    compare_sums(dw_.get(), expected.values, size.values, worst);
    compare_sums(db_too_.get(), expected.bias, size.bias, worst);
    case_.judge("weight and bias gradient", worst,
                dw_.intact() && db_too_.intact() && workspace_.intact() && device_x_.intact());
  }

  // Compares sums over the rows.
  void compare_sums(const std::vector<T>& got, const std::vector<double>& expected,
                    const std::vector<double>& size, Worst& worst) const {
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst.take(to_float(got[i]), expected[i],
                 slack<T>(size[i], n_.rows) + 2 * half_step<T>(expected[i]));
    }
  }

  const Activation activation_;
  const Sizes n_;
  const int offset_;
  const LinearShape first_ = shape(n_.inputs, n_.hidden);
  const LinearShape second_ = shape(n_.hidden, n_.outputs);

  const std::vector<T> x_ = random_elements<T>(n_.rows * n_.inputs, 1);
  const std::vector<T> w_ = random_elements<T>(n_.hidden * n_.inputs, 2);
  const std::vector<T> b_ = random_elements<T>(n_.hidden, 3);
  const std::vector<T> w2_ = random_elements<T>(n_.outputs * n_.hidden, 4);
  const std::vector<T> dy_ = random_elements<T>(n_.rows * n_.outputs, 5);
  DeviceArray<T> device_x_{x_, offset_}, device_w_{w_, offset_}, device_b_{b_, offset_};
  DeviceArray<T> device_w2_{w2_, offset_}, device_dy_{dy_, offset_};
  DeviceArray<T> h_{n_.rows * n_.hidden, offset_}, without_aux_{n_.rows * n_.hidden, offset_};
  DeviceArray<T> dz_{n_.rows * n_.hidden, offset_}, dz_alone_{n_.rows * n_.hidden, offset_};
  DeviceArray<T> db_{n_.hidden, offset_}, db_too_{n_.hidden, offset_};
  DeviceArray<T> dw_{n_.hidden * n_.inputs, offset_};
  DeviceArray<unsigned char> aux_{
      linear_aux_bytes(first_.type, activation_, first_.rows, first_.outputs)};
  DeviceArray<unsigned char> workspace_;
  const GemmWorkspace scratch_;

  const LinearLayer twin_{n_.rows,        n_.inputs,      n_.hidden,
                          doubles_of(x_), doubles_of(w_), doubles_of(b_)};
  const LinearLayer sizes_{
      n_.rows, n_.inputs, n_.hidden, magnitudes(twin_.x), magnitudes(twin_.w), magnitudes(twin_.b)};
  const LinearOutput expected_ = linear_output(twin_, twin_of(activation_));
  const std::vector<double> size_ = linear_output(sizes_, Nonlinearity::kNone).y;
  Case case_;
};

// Checks that the same call gives the same bits.
void check_repeats(Checks& checks) {
  const std::size_t rows = checks.size(512, 16), inputs = checks.size(768, 24);
  const std::size_t outputs = checks.size(3072, 40);
  DeviceArray<Bf16> x(random_elements<Bf16>(rows * inputs, 1));
  DeviceArray<Bf16> w(random_elements<Bf16>(outputs * inputs, 2));
  DeviceArray<Bf16> b(random_elements<Bf16>(outputs, 3));
  DeviceArray<Bf16> y(rows * outputs);
  const std::size_t bytes = checks.size(kGemmWorkspaceBytes, 4096);
  DeviceArray<unsigned char> workspace(bytes);
  const LinearShape shape{ElementType::kBf16, Activation::kGelu, static_cast<std::int64_t>(rows),
                          static_cast<std::int64_t>(inputs), static_cast<std::int64_t>(outputs)};
  std::vector<Bf16> first;
  std::size_t changed = 0;
  for (int repeat = 0; repeat < 20; ++repeat) {
    require(linear_forward(shape, {x.data(), w.data(), b.data(), y.data(), nullptr},
                           {workspace.data(), bytes}, nullptr));
    wait_for_gpu();
    const auto got = y.get();
    if (repeat == 0) first = got;
    changed += different(got, first);
  }
  checks.line("product, 20 runs, the same bits", changed == 0, std::to_string(changed) + " differ");
}

template <typename T>
void check_type(Checks& checks) {
  const std::size_t room = checks.size(kGemmWorkspaceBytes, 4096);
  const auto check = [&](Activation activation, const Sizes& n, int offset, std::size_t bytes) {
    Network<T>(checks, activation, n, offset, bytes).check();
  };
  for (const auto activation : {Activation::kIdentity, Activation::kRelu, Activation::kGelu}) {
    check(activation, {64, 64, 128, 64}, 0, room);
    check(activation, {96, 72, 200, 40}, 0, room);
    check(activation, {96, 72, 200, 40}, 0, 0);
    check(activation, {33, 17, 131, 5}, 0, room);
    check(activation, {64, 64, 128, 64}, 1, room);
    check(activation, {1, 8, 8, 8}, 0, room);
  }
}

}  // namespace

void check_gemm(Checks& checks) {
  check_type<float>(checks);
  check_type<Bf16>(checks);
  check_type<Fp16>(checks);
  check_repeats(checks);
}

}  // namespace syncline::kernels
