// Products with cublasLt's epilogues on the GPU against the host twin in double.

#include "kernels/check/check.cuh"
#include "kernels/gemm_epilogue.h"
#include "kernels/reference/linear.h"

namespace syncline {
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

template <typename T>
std::vector<double> doubles_of(const std::vector<T>& values) {
  const auto wide = floats_of(values);
  return {wide.begin(), wide.end()};
}

std::vector<double> magnitudes(std::vector<double> values) {
  for (auto& value : values) value = std::fabs(value);
  return values;
}

// What summing in fp32 may lose, whatever the order: `terms` roundings of the sum of magnitudes;
// and what the epilogue's own functions may (tanh).
double slack(double magnitude, std::size_t terms) {
  return static_cast<double>(terms + 4) * 0x1p-24 * magnitude + 2e-3 * 0x1p-8 * (1 + magnitude);
}

// The largest error in units of what is allowed; a NaN passes nothing.
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

// One case of the program. An answer of cublasLt that it has no kernel is only taken where the
// arrays are not aligned, which it need not serve.
class Case {
 public:
  Case(Checks& checks, std::string name, bool aligned)
      : checks_(checks), name_(std::move(name)), aligned_(aligned) {}

  // Whether the results are there to be compared.
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
    checks_.line(name_ + " " + product, worst.passed() && intact,
                 worst.text() + (intact ? "" : ", a canary died"));
  }

 private:
  Checks& checks_;
  std::string name_;
  bool aligned_;
};

template <typename T>
void check_network(Checks& checks, Activation activation, const Sizes& n, int offset,
                   std::size_t workspace_bytes) {
  const auto x = random_elements<T>(n.rows * n.inputs, 1);
  const auto w = random_elements<T>(n.hidden * n.inputs, 2);
  const auto b = random_elements<T>(n.hidden, 3);
  const auto w2 = random_elements<T>(n.outputs * n.hidden, 4);
  const auto dy = random_elements<T>(n.rows * n.outputs, 5);
  DeviceArray<T> device_x(x, offset), device_w(w, offset), device_b(b, offset);
  DeviceArray<T> device_w2(w2, offset), device_dy(dy, offset);
  DeviceArray<T> h(n.rows * n.hidden, offset), without_aux(n.rows * n.hidden, offset);
  DeviceArray<T> dz(n.rows * n.hidden, offset), dz_alone(n.rows * n.hidden, offset);
  DeviceArray<T> db(n.hidden, offset), dw(n.hidden * n.inputs, offset), db_too(n.hidden, offset);
  const LinearShape first{kElementType<T>, activation, static_cast<std::int64_t>(n.rows),
                          static_cast<std::int64_t>(n.inputs), static_cast<std::int64_t>(n.hidden)};
  LinearShape second = first;
  second.inputs = first.outputs;
  second.outputs = static_cast<std::int64_t>(n.outputs);
  const bool activates = activation != Activation::kIdentity;
  DeviceArray<unsigned char> aux(
      linear_aux_bytes(first.type, activation, first.rows, first.outputs));
  DeviceArray<unsigned char> workspace(workspace_bytes);
  const GemmWorkspace scratch{workspace_bytes == 0 ? nullptr : workspace.data(), workspace_bytes};

  Case now(checks,
           std::string(name_of(activation)) + " " + name_of(first.type) + " " +
               std::to_string(n.rows) + " rows " + std::to_string(n.inputs) + " -> " +
               std::to_string(n.hidden) + " -> " + std::to_string(n.outputs) + ", offset " +
               std::to_string(offset) + ", workspace " + std::to_string(workspace_bytes),
           offset == 0 && n.inputs % 8 == 0 && n.hidden % 8 == 0 && n.outputs % 8 == 0);

  const LinearLayer twin{n.rows, n.inputs, n.hidden, doubles_of(x), doubles_of(w), doubles_of(b)};
  const auto expected = linear_output(twin, twin_of(activation));
  const LinearLayer sizes{
      n.rows, n.inputs, n.hidden, magnitudes(twin.x), magnitudes(twin.w), magnitudes(twin.b)};
  const auto size = linear_output(sizes, Nonlinearity::kNone).y;
  const auto judge_forward = [&](const char* name, DeviceArray<T>& array) {
    const auto got = array.get();
    Worst worst;
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst.take(to_float(got[i]), expected.y[i],
                 1.2 * slack(size[i], n.inputs) + 2 * half_step<T>(expected.y[i]));
    }
    now.judge(name, worst, array.intact() && aux.intact() && workspace.intact());
  };

  if (now.done("forward", linear_forward(first,
                                         {device_x.data(), device_w.data(), device_b.data(),
                                          without_aux.data(), nullptr},
                                         scratch, nullptr))) {
    judge_forward("forward", without_aux);
  }
  if (!now.done("forward, kept", linear_forward(first,
                                                {device_x.data(), device_w.data(), device_b.data(),
                                                 h.data(), activates ? aux.data() : nullptr},
                                                scratch, nullptr))) {
    return;
  }
  judge_forward("forward, kept", h);

  // The gradient behind it: the second layer's dy goes through w2 and the slope at z.
  const LinearLayer behind{n.rows, n.hidden, n.outputs, {}, doubles_of(w2), {}};
  const LinearLayer behind_sizes{n.rows, n.hidden, n.outputs, {}, magnitudes(behind.w), {}};
  const auto dy_twin = doubles_of(dy);
  const auto before = linear_gradient_before(behind, dy_twin, twin_of(activation), expected.z);
  const auto dx_size =
      linear_gradient_before(behind_sizes, magnitudes(dy_twin), Nonlinearity::kNone, expected.z)
          .values;
  std::vector<double> allowed(dx_size.size());
  std::vector<double> allowed_sums(n.hidden);
  std::vector<bool> torn(dx_size.size());
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    const double z_error = 1.2 * slack(size[i], n.inputs) + 2 * half_step<T>(expected.z[i]);
    // A relu that is a hair from 0 may have cut differently; a gelu's slope moves with z, by at
    // most 0.8 times as much.
    torn[i] = activation == Activation::kRelu && std::fabs(expected.z[i]) <= z_error;
    const double moved = activation == Activation::kGelu ? z_error + 2e-5 : torn[i] ? 1 : 0;
    allowed[i] = 1.2 * slack(dx_size[i], n.outputs) + dx_size[i] * moved;
    allowed_sums[i % n.hidden] += allowed[i] + half_step<T>(before.values[i]);
    allowed_sums[i % n.hidden] += slack(std::fabs(before.values[i]), n.rows);
  }
  const auto judge_gradient = [&](const char* name, DeviceArray<T>& array, bool sums) {
    const auto got = array.get();
    Worst worst;
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst.take(to_float(got[i]), before.values[i],
                 allowed[i] + 2 * half_step<T>(before.values[i]) + 1e-30);
    }
    if (sums) {
      const auto got_sums = db.get();
      for (std::size_t c = 0; c < n.hidden; ++c) {
        worst.take(to_float(got_sums[c]), before.bias[c],
                   allowed_sums[c] + 2 * half_step<T>(before.bias[c]));
      }
    }
    now.judge(name, worst, array.intact() && db.intact() && aux.intact() && workspace.intact());
  };
  const void* const kept = activates ? aux.data() : nullptr;
  if (now.done("input gradient",
               linear_input_gradient(
                   second, {device_dy.data(), device_w2.data(), kept, dz_alone.data(), nullptr},
                   scratch, nullptr))) {
    judge_gradient("input gradient", dz_alone, false);
  }
  if (activates &&
      now.done("input and bias gradient",
               linear_input_gradient(
                   second, {device_dy.data(), device_w2.data(), kept, dz.data(), db.data()},
                   scratch, nullptr))) {
    judge_gradient("input and bias gradient", dz, true);
  }

  // The first layer's weights, as if h's gradient were b's neighbours: any matrix will do.
  const auto dh = random_elements<T>(n.rows * n.hidden, 6);
  DeviceArray<T> device_dh(dh, offset);
  if (!now.done("weight and bias gradient",
                linear_weight_gradient(
                    first, {device_dh.data(), device_x.data(), dw.data(), db_too.data()}, scratch,
                    nullptr))) {
    return;
  }
  const auto weights = linear_gradient_of_weights(twin, doubles_of(dh));
  const auto weight_sizes = linear_gradient_of_weights(sizes, magnitudes(doubles_of(dh)));
  const auto got_dw = dw.get();
  const auto got_db = db_too.get();
  Worst worst;
  for (std::size_t i = 0; i < got_dw.size(); ++i) {
    worst.take(to_float(got_dw[i]), weights.values[i],
               slack(weight_sizes.values[i], n.rows) + 2 * half_step<T>(weights.values[i]));
  }
  for (std::size_t i = 0; i < got_db.size(); ++i) {
    worst.take(to_float(got_db[i]), weights.bias[i],
               slack(weight_sizes.bias[i], n.rows) + 2 * half_step<T>(weights.bias[i]));
  }
  now.judge("weight and bias gradient", worst,
            dw.intact() && db_too.intact() && workspace.intact() && device_x.intact());
}

// The same call gives the same bits.
void check_repeats(Checks& checks) {
  const std::size_t rows = 512, inputs = 768, outputs = 3072;
  DeviceArray<Bf16> x(random_elements<Bf16>(rows * inputs, 1));
  DeviceArray<Bf16> w(random_elements<Bf16>(outputs * inputs, 2));
  DeviceArray<Bf16> b(random_elements<Bf16>(outputs, 3));
  DeviceArray<Bf16> y(rows * outputs);
  DeviceArray<unsigned char> workspace(kGemmWorkspaceBytes);
  const LinearShape shape{ElementType::kBf16, Activation::kGelu, rows, inputs, outputs};
  std::vector<Bf16> first;
  std::size_t changed = 0;
  for (int repeat = 0; repeat < 20; ++repeat) {
    require(linear_forward(shape, {x.data(), w.data(), b.data(), y.data(), nullptr},
                           {workspace.data(), kGemmWorkspaceBytes}, nullptr));
    wait_for_gpu();
    const auto got = y.get();
    if (repeat == 0) first = got;
    changed += different(got, first);
  }
  checks.line("20 runs, the same bits", changed == 0, std::to_string(changed) + " differ");
}

template <typename T>
void check_type(Checks& checks) {
  for (const auto activation : {Activation::kIdentity, Activation::kRelu, Activation::kGelu}) {
    check_network<T>(checks, activation, {64, 64, 128, 64}, 0, kGemmWorkspaceBytes);
    check_network<T>(checks, activation, {96, 72, 200, 40}, 0, kGemmWorkspaceBytes);
    check_network<T>(checks, activation, {96, 72, 200, 40}, 0, 0);
    check_network<T>(checks, activation, {33, 17, 131, 5}, 0, kGemmWorkspaceBytes);
    check_network<T>(checks, activation, {64, 64, 128, 64}, 1, kGemmWorkspaceBytes);
    check_network<T>(checks, activation, {1, 8, 8, 8}, 0, kGemmWorkspaceBytes);
  }
}

}  // namespace
}  // namespace syncline

int main() {
  using namespace syncline;
  Checks checks("gemm_epilogue");
  check_type<float>(checks);
  check_type<Bf16>(checks);
  check_type<Fp16>(checks);
  check_repeats(checks);
  return checks.result();
}
