// One transformer block as operators: attention and feed-forward, each with its residual and
// normalisation, either operator by operator as Paddle's nn.TransformerEncoderLayer launches them,
// or as the kernels inside FusedMultiHeadAttention and FusedFeedForward.
#pragma once

#include <string>
#include <vector>

#include "core/operators/architecture.h"
#include "core/operators/builder.h"

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

Image conv2d(GraphBuilder& build, const Image& x, const std::string& weight, std::int64_t channels,
             std::int64_t kernel, std::int64_t stride);
// Parameters PREFIX_scale and _offset, statistics PREFIX_mean and _variance.
Image batch_norm(GraphBuilder& build, const Image& x, const std::string& prefix);
// Halves the image (stride 2), whatever the window; or takes the mean of each channel.
Image max_pool(GraphBuilder& build, const Image& x);
Image mean_pool(GraphBuilder& build, const Image& x);

// An element-wise function of one value: relu, gelu, tanh, scale. The gradient reads the output
// (relu, tanh), the input (gelu), or neither (scale).
int activate(GraphBuilder& build, const std::string& kind, int x, std::int64_t elements);
// The sum of two values of one size.
int add(GraphBuilder& build, int x, int y, std::int64_t elements);
// Adds a parameter of so many elements along one dimension.
int add_bias(GraphBuilder& build, int x, std::int64_t elements, const std::string& bias,
             std::int64_t bias_elements);
int dropout(GraphBuilder& build, int x, std::int64_t elements);
int softmax(GraphBuilder& build, int x, std::int64_t elements);
// One copy: transpose2 of attention heads.
int transpose(GraphBuilder& build, int x, std::int64_t elements);
int layer_norm(GraphBuilder& build, int x, std::int64_t rows, std::int64_t width,
               const std::string& prefix);

// rows x inner times inner x columns, by a weight stored as [inner, columns], or, `stored_out`, as
// [columns, inner] like torch's. No bias.
int product(GraphBuilder& build, int x, std::int64_t rows, std::int64_t inner, std::int64_t columns,
            const std::string& weight, bool stored_out);
// The same with its bias: two operators, or FusedLinear's one.
int linear(GraphBuilder& build, int x, std::int64_t rows, std::int64_t inner, std::int64_t columns,
           const std::string& weight, const std::string& bias, bool stored_out, bool fused);
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

struct BlockShape {
  std::int64_t batch = 1;
  std::int64_t sequence = 128;
  std::int64_t hidden = 768;
  std::int64_t heads = 12;
  std::int64_t inner = 3072;  // of the feed-forward half
  int tensor = 1;             // ranks that share the heads and the inner half

  std::int64_t rows() const { return batch * sequence; }
  std::int64_t elements() const { return rows() * hidden; }
  std::int64_t scores() const { return batch * heads / tensor * sequence * sequence; }
  std::int64_t own_elements() const { return elements() / tensor; }
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

struct BlockStyle {
  bool norm_first = false;  // GPT-2 normalises what goes into a half, BERT what comes out
  bool stored_out = true;   // weights are stored as [columns, inner]
  bool fused_attention = false;
  bool fused_feedforward = false;
  bool fused_linear = false;
  bool flash_attention = false;
};

BlockShape block_shape(const ArchitectureOptions& options, std::int64_t sequence);

// x + attention(x), and x + feed-forward(x), with dropout and normalisation.
int attention(GraphBuilder& build, int x, const BlockShape& shape, const BlockNames& names,
              const BlockStyle& style);
int feedforward(GraphBuilder& build, int x, const BlockShape& shape, const BlockNames& names,
                const BlockStyle& style);

// softmax(q k^T) v in one kernel, from [rows, heads, width] to the same. FLOPs are those of the two
// products in full, forward, and twice that backward: what a causal mask saves and what the
// backward pass computes again are left out, as in the usual count of a model's FLOPs.
int flash_attention(GraphBuilder& build, int q, int k, int v, double flops, std::int64_t elements);

}  // namespace syncline::operators
