// One transformer block as operators: attention and feed-forward, each with its residual and
// normalisation, either operator by operator as Paddle's nn.TransformerEncoderLayer launches them,
// or as the kernels inside FusedMultiHeadAttention and FusedFeedForward.
#pragma once

#include <string>
#include <vector>

#include "catalogue/architectures/architecture.h"
#include "catalogue/architectures/builder.h"

namespace syncline::operators {

// Layers as the operators that Paddle launches for them, forward and (on the builder's tape)
// backward. Each takes values and gives its output's value; sizes are in elements. FLOPs count a
// multiply-add as two; those of element-wise work are rough, as memory decides their time.

// A square image with its channels, for the whole batch.
struct Image {
  int value = 0;
  std::int64_t batch = 1;
  std::int64_t channels = 0;
  std::int64_t size = 0;

  std::int64_t elements() const { return batch * channels * size * size; }
};

// What the model is given, which has no gradient.
Image input_image(GraphBuilder& build, const ArchitectureOptions& options);

Image conv2d(GraphBuilder& build, const Image& x, const std::string& weight, std::int64_t channels,
             std::int64_t kernel, std::int64_t stride);
// Parameters PREFIX_scale and _offset, statistics PREFIX_mean and _variance.
Image batch_norm(GraphBuilder& build, const Image& x, const std::string& prefix);
// Halves the image (stride 2), whatever the window; or takes the mean of each channel.
Image pool(GraphBuilder& build, const Image& x, bool mean);

// Returns a kernel from one value to one of its size, with so many FLOPs an element, forward and
// backward. The gradient reads the output (relu, tanh, softmax), the input (gelu, squared_relu), or
// neither (scale, copies in another order).
int activate(GraphBuilder& build, const std::string& kind, int x, std::int64_t elements,
             double flops = 1);
// Returns the sum of two values of one size.
int add(GraphBuilder& build, int x, int y, std::int64_t elements);
// Adds a parameter of so many elements along one dimension.
int add_bias(GraphBuilder& build, int x, std::int64_t elements, const std::string& bias,
             std::int64_t bias_elements);
int dropout(GraphBuilder& build, int x, std::int64_t elements);
// layer_norm, or rms_norm, which has no offset.
int normalise(GraphBuilder& build, const std::string& kind, int x, std::int64_t rows,
              std::int64_t width, const std::string& prefix);

// rows x inner times inner x columns, by a weight stored as [inner, columns], or, `stored_out`, as
// [columns, inner] like torch's. With a bias it is FusedLinear's.
int product(GraphBuilder& build, int x, std::int64_t rows, std::int64_t inner, std::int64_t columns,
            const std::string& weight, bool stored_out, const std::string& bias = "");
// By NAME.weight, with NAME.bias: two operators, or FusedLinear's one.
int linear(GraphBuilder& build, int x, std::int64_t rows, std::int64_t inner, std::int64_t columns,
           const std::string& name, bool stored_out, bool fused);
// `count` products of two activations, m x k times k x n each.
int batched_product(GraphBuilder& build, int x, int y, std::int64_t count, std::int64_t m,
                    std::int64_t k, std::int64_t n);

// Rows of a table by index; its gradient is dense. `cast`: a table that products read as well.
int embedding(GraphBuilder& build, const std::string& weight, std::int64_t table,
              std::int64_t width, std::int64_t rows, bool cast);

// The loss over logits, softmax_with_cross_entropy, with which the backward pass begins; or, where
// the task's head is not part of the model, the mean of its output.
void cross_entropy(GraphBuilder& build, int logits, std::int64_t elements);
void mean_loss(GraphBuilder& build, int x, std::int64_t elements);

// What the blocks of one model have in common.
struct Block {
  ArchitectureOptions options;
  std::int64_t sequence;
  bool norm_first;  // GPT-2 normalises what goes into a half, BERT what comes out
  bool stored_out;  // weights are stored as [columns, inner]
  std::int64_t hidden = options.shape.hidden;
  std::int64_t tensor = options.parallel.tensor;  // ranks that share the heads and the inner half

  std::int64_t rows() const { return options.batch * sequence; }
  // Between the products: a rank's own tokens with sequence parallelism (Korthikanti et al., 2022).
  std::int64_t rows_between() const {
    return options.parallel.sequence ? rows() / options.parallel.tensor : rows();
  }
  std::int64_t elements() const { return rows_between() * hidden; }
  std::int64_t heads() const { return options.batch * options.shape.heads / tensor; }
  std::int64_t scores() const { return heads() * sequence * sequence; }
  std::int64_t own_elements() const { return rows() * hidden / tensor; }
};

// Names of the layers, to which .weight and .bias are added.
struct BlockNames {
  std::vector<std::string> projections;  // query, key and value; or one for all three
  std::string all;                       // that one, where the fused layer makes it of three
  std::string output;
  std::string attention_norm;
  std::string inner;
  std::string outer;
  std::string feedforward_norm;
};

// x + attention(x), and x + feed-forward(x), with dropout and normalisation.
int attention(GraphBuilder& build, int x, const Block& block, const BlockNames& names);
int feedforward(GraphBuilder& build, int x, const Block& block, const BlockNames& names);

// softmax(q k^T) v in one kernel, from [rows, heads, width] to the same. FLOPs are those of the two
// products in full, forward, and twice that backward: what a causal mask saves and what the
// backward pass computes again are left out, as in the usual count of a model's FLOPs.
int flash_attention(GraphBuilder& build, int q, int k, int v, double flops, std::int64_t elements);

}  // namespace syncline::operators
