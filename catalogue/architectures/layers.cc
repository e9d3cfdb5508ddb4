#include "catalogue/architectures/transformer.h"

namespace syncline::operators {
namespace {

// Adds the gradient operator of a product of x, a weight and perhaps a bias: dX unless x is the
// model's input, the bias's, and dW. dX and dW are separate kernels that read dY.
void product_gradient(GraphBuilder& build, const std::string& kind, const Operator& product) {
  build.on_backward([=, &build] {
    const int x = product.inputs[0].value, weight = product.inputs[1].value;
    const int dy = build.gradient(product.outputs[0].value);
    const bool inner = !build.is_constant(x);
    std::vector<Operand> inputs{{x}, {dy, inner ? 2 : 1}}, outputs;
    if (inner) inputs.push_back({weight});
    if (inner) outputs.push_back({build.contribute(x)});
    if (product.inputs.size() > 2) {
      outputs.push_back({build.contribute_parameter(product.inputs[2].value)});
    }
    outputs.push_back({build.contribute_parameter(weight)});
    Operator& op = build.add(kind, std::move(inputs), std::move(outputs));
    op.kernels = inner ? 2 : 1;
    op.matrix_flops = product.matrix_flops * op.kernels;
    op.flops = product.flops;
    op.columns = product.columns;
  });
}

// Adds the gradient operator of an element-wise function, which reads `kept` and dY.
void elementwise_gradient(GraphBuilder& build, const std::string& kind, int x, int y,
                          const std::vector<Operand>& kept, double flops) {
  build.on_backward([=, &build] {
    std::vector<Operand> inputs = kept;
    inputs.push_back({build.gradient(y)});
    build.add(kind, std::move(inputs), {{build.contribute(x)}}).flops = flops;
  });
}

}  // namespace

Image input_image(GraphBuilder& build, const ArchitectureOptions& options) {
  Image x{0, options.batch, 3, options.image};
  x.value = build.activation(x.elements());
  build.mark_constant(x.value);
  return x;
}

Image conv2d(GraphBuilder& build, const Image& x, const std::string& weight, std::int64_t channels,
             std::int64_t kernel, std::int64_t stride) {
  Image y = x;
  y.channels = channels;
  y.size = (x.size + stride - 1) / stride;
  y.value = build.activation(y.elements());
  const int w = build.parameter(weight, {channels, x.channels, kernel, kernel}, true);
  Operator& op = build.add("conv2d", {{x.value}, {w}}, {{y.value}});
  op.matrix_flops = 2 * real(y.elements()) * real(x.channels * kernel * kernel);
  product_gradient(build, "conv2d_grad", op);
  return y;
}

// Adds passes over memory. The statistics need the whole input before the first output, so it is
// read twice; the gradient needs two sums over x and dY before it reads both again.
Image batch_norm(GraphBuilder& build, const Image& x, const std::string& prefix) {
  Image y = x;
  y.value = build.activation(y.elements());
  const int scale = build.parameter(prefix + "_scale", {x.channels}, false);
  const int offset = build.parameter(prefix + "_offset", {x.channels}, false);
  build.buffer(prefix + "_mean", x.channels);
  build.buffer(prefix + "_variance", x.channels);
  build.add("batch_norm", {{x.value, 2}, {scale}, {offset}}, {{y.value}}).flops =
      8 * real(x.elements());
  build.on_backward([=, &build] {
    const int dy = build.gradient(y.value);
    const int dx = build.contribute(x.value);
    const int dscale = build.contribute_parameter(scale);
    const int doffset = build.contribute_parameter(offset);
    build.add("batch_norm_grad", {{x.value, 2}, {dy, 2}, {scale}}, {{dx}, {dscale}, {doffset}})
        .flops = 12 * real(x.elements());
  });
  return y;
}

Image pool(GraphBuilder& build, const Image& x, bool mean) {
  Image y = x;
  y.size = mean ? 1 : (x.size + 1) / 2;
  y.value = build.activation(y.elements());
  build.add("pool2d", {{x.value}}, {{y.value}}).flops = real(x.elements());
  std::vector<Operand> kept;
  if (!mean) kept = {{x.value}, {y.value}};
  elementwise_gradient(build, "pool2d_grad", x.value, y.value, kept, real(x.elements()));
  return y;
}

int activate(GraphBuilder& build, const std::string& kind, int x, std::int64_t elements,
             double flops) {
  const int y = build.activation(elements);
  build.add(kind, {{x}}, {{y}}).flops = flops * real(elements);
  std::vector<Operand> kept;
  if (kind == "relu" || kind == "tanh" || kind == "sigmoid" || kind == "softmax") {
    kept.push_back({y});
  }
  if (kind == "gelu" || kind == "squared_relu") kept.push_back({x});
  elementwise_gradient(build, kind + "_grad", x, y, kept, flops * real(elements));
  return y;
}

// Adds a sum. Both gradients are dY: the first takes over its memory, the second is a copy.
int add(GraphBuilder& build, int x, int y, std::int64_t elements) {
  const int sum = build.activation(elements);
  build.add("elementwise_add", {{x}, {y}}, {{sum}}).flops = real(elements);
  build.on_backward([=, &build] {
    const int dsum = build.gradient(sum);
    const int dx = build.contribute(x);
    const int dy = build.contribute(y);
    build.add("elementwise_add_grad", {{dsum}}, {{dx, 0}, {dy}});
  });
  return sum;
}

int add_bias(GraphBuilder& build, int x, std::int64_t elements, const std::string& bias,
             std::int64_t bias_elements) {
  const int b = build.parameter(bias, {bias_elements}, true);
  const int y = build.activation(elements);
  build.add("elementwise_add", {{x}, {b}}, {{y}}).flops = real(elements);
  build.on_backward([=, &build] {
    const int dy = build.gradient(y);
    const int dx = build.contribute(x);
    const int db = build.contribute_parameter(b);
    build.add("elementwise_add_grad", {{dy}}, {{dx, 0}, {db}}).flops = real(elements);
  });
  return y;
}

int dropout(GraphBuilder& build, int x, std::int64_t elements) {
  const int y = build.activation(elements);
  const int mask = build.raw_value({}, elements);  // one byte each
  build.add("dropout", {{x}}, {{y}, {mask}}).flops = real(elements);
  elementwise_gradient(build, "dropout_grad", x, y, {{mask}}, real(elements));
  return y;
}

// A row stays on the chip, so x is read once; the parameters' gradients take a separate pass.
int normalise(GraphBuilder& build, const std::string& kind, int x, std::int64_t rows,
              std::int64_t width, const std::string& prefix) {
  const bool shifts = kind == "layer_norm";
  const int scale = build.parameter(prefix + ".weight", {width}, false);
  const int offset = shifts ? build.parameter(prefix + ".bias", {width}, false) : 0;
  const int y = build.activation(rows * width);
  std::vector<Operand> inputs{{x}, {scale}};
  if (shifts) inputs.push_back({offset});
  build.add(kind, std::move(inputs), {{y}}).flops = (shifts ? 8 : 4) * real(rows * width);
  build.on_backward([=, &build] {
    const int dy = build.gradient(y);
    std::vector<Operand> outputs{{build.contribute(x)}};
    if (shifts) outputs.push_back({build.contribute_parameter(offset)});
    outputs.push_back({build.contribute_parameter(scale)});
    Operator& op = build.add(kind + "_grad", {{x, 2}, {dy, 2}, {scale}}, std::move(outputs));
    op.flops = (shifts ? 12 : 8) * real(rows * width);
    op.kernels = 2;
  });
  return y;
}

int product(GraphBuilder& build, int x, std::int64_t rows, std::int64_t inner, std::int64_t columns,
            const std::string& weight, bool stored_out, const std::string& bias) {
  using Shape = std::vector<std::int64_t>;
  const Shape shape = stored_out ? Shape{columns, inner} : Shape{inner, columns};
  std::vector<Operand> inputs{{x}, {build.parameter(weight, shape, true)}};
  const bool plain = bias.empty();
  if (!plain) inputs.push_back({build.parameter(bias, {columns}, true)});
  const std::string kind = plain ? "matmul_v2" : "fused_gemm_epilogue";
  const int y = build.activation(rows * columns);
  Operator& op = build.add(kind, std::move(inputs), {{y}});
  op.matrix_flops = 2 * real(rows) * real(inner) * real(columns);
  op.flops = plain ? 0 : real(rows * columns);
  op.columns = columns;
  product_gradient(build, kind + "_grad", op);
  return y;
}

int linear(GraphBuilder& build, int x, std::int64_t rows, std::int64_t inner, std::int64_t columns,
           const std::string& name, bool stored_out, bool fused) {
  const std::string weight = name + ".weight", bias = name + ".bias";
  if (fused) return product(build, x, rows, inner, columns, weight, stored_out, bias);
  const int y = product(build, x, rows, inner, columns, weight, stored_out);
  return add_bias(build, y, rows * columns, bias, columns);
}

int batched_product(GraphBuilder& build, int x, int y, std::int64_t count, std::int64_t m,
                    std::int64_t k, std::int64_t n) {
  const int z = build.activation(count * m * n);
  const double flops = 2 * real(count) * real(m) * real(k) * real(n);
  build.add("matmul_v2", {{x}, {y}}, {{z}}).matrix_flops = flops;
  build.on_backward([=, &build] {
    const int dz = build.gradient(z);
    const int dx = build.contribute(x);
    const int dy = build.contribute(y);
    Operator& op = build.add("matmul_v2_grad", {{x}, {y}, {dz, 2}}, {{dx}, {dy}});
    op.matrix_flops = 2 * flops;
    op.kernels = 2;
  });
  return z;
}

// Adds a lookup. The gradient's table is cleared and written, and the rows are added to it.
int embedding(GraphBuilder& build, const std::string& weight, std::int64_t table,
              std::int64_t width, std::int64_t rows, bool cast) {
  const int w = build.parameter(weight, {table, width}, cast);
  const int y = build.activation(rows * width);
  // Reads only the requested rows: the number of bytes written, in the table's own dtype.
  const int read = cast ? build.activation(rows * width) : build.value(rows * width, DType::kFp32);
  build.add("lookup_table_v2", {{w, 0}, {read}}, {{y}});
  build.on_backward([=, &build] {
    const int dy = build.gradient(y);
    const int dw = build.contribute_parameter(w);
    Operator& op = build.add("lookup_table_v2_grad", {{dy}}, {{dw}});
    op.flops = real(rows * width);
    op.kernels = 2;
  });
  return y;
}

void cross_entropy(GraphBuilder& build, int logits, std::int64_t elements) {
  const int probabilities = build.activation(elements);
  build.add("softmax_with_cross_entropy", {{logits}}, {{probabilities}}).flops = 5 * real(elements);
  build.on_backward([=, &build] {
    build.add("softmax_with_cross_entropy_grad", {{probabilities}}, {{build.contribute(logits)}})
        .flops = real(elements);
  });
}

void mean_loss(GraphBuilder& build, int x, std::int64_t elements) {
  const int mean = build.activation(1);
  build.add("mean", {{x}}, {{mean}}).flops = real(elements);
  build.on_backward([=, &build] { build.add("mean_grad", {{mean}}, {{build.contribute(x)}}); });
}

}  // namespace syncline::operators
