// One transformer block as operators: attention and feed-forward, each with its residual and
// normalisation. Either operator by operator like Paddle's nn.TransformerEncoderLayer, or as the
// kernels inside FusedMultiHeadAttention and FusedFeedForward.
#pragma once

#include <string>
#include <vector>

#include "catalogue/architectures/architecture.h"
#include "catalogue/architectures/builder.h"

namespace syncline::operators {

// Layers as Paddle's operators, forward and (on the builder's tape) backward. Each takes values and
// returns its output's value; sizes are in elements. A multiply-add counts as two FLOPs; those of
// element-wise work are rough, as memory decides their time.

// A square image with its channels, for the whole batch.
struct Image {
  int value = 0;
  std::int64_t batch = 1;
  std::int64_t channels = 0;
  std::int64_t size = 0;

  std::int64_t elements() const { return batch * channels * size * size; }
};

// Returns the model's input, which has no gradient.
Image input_image(GraphBuilder& build, const ArchitectureOptions& options);

Image conv2d(GraphBuilder& build, const Image& x, const std::string& weight, std::int64_t channels,
             std::int64_t kernel, std::int64_t stride);
// Adds a normalisation: parameters PREFIX_scale and _offset, statistics PREFIX_mean and _variance.
Image batch_norm(GraphBuilder& build, const Image& x, const std::string& prefix);
// Pools the image: halves it (stride 2) for any window, or takes the mean of each channel.
Image pool(GraphBuilder& build, const Image& x, bool mean);

// Returns the output of a kernel of one input, of equal size, with `flops` per element, forward and
// backward. The gradient reads the output (relu, tanh, softmax), the input (gelu, squared_relu), or
// neither (scale, copies in another order).
int activate(GraphBuilder& build, const std::string& kind, int x, std::int64_t elements,
             double flops = 1);
// Returns the sum of two values of one size.
int add(GraphBuilder& build, int x, int y, std::int64_t elements);
// Adds a parameter of `bias_elements` along one dimension.
int add_bias(GraphBuilder& build, int x, std::int64_t elements, const std::string& bias,
             std::int64_t bias_elements);
int dropout(GraphBuilder& build, int x, std::int64_t elements);
// Returns layer_norm, or rms_norm, which has no offset.
int normalise(GraphBuilder& build, const std::string& kind, int x, std::int64_t rows,
              std::int64_t width, const std::string& prefix);

// Returns rows x inner times inner x columns. The weight is stored as [inner, columns], or, if
// `stored_out`, as [columns, inner] like torch's. With a bias it is FusedLinear's.
int product(GraphBuilder& build, int x, std::int64_t rows, std::int64_t inner, std::int64_t columns,
            const std::string& weight, bool stored_out, const std::string& bias = "");
// Returns the product by NAME.weight plus NAME.bias: two operators, or FusedLinear's one.
int linear(GraphBuilder& build, int x, std::int64_t rows, std::int64_t inner, std::int64_t columns,
           const std::string& name, bool stored_out, bool fused);
// Returns `count` products of two activations, each m x k times k x n.
int batched_product(GraphBuilder& build, int x, int y, std::int64_t count, std::int64_t m,
                    std::int64_t k, std::int64_t n);

// Returns rows of a table by index; its gradient is dense. `cast`: the table has the dtype of the
// products, since they read it too.
int embedding(GraphBuilder& build, const std::string& weight, std::int64_t table,
              std::int64_t width, std::int64_t rows, bool cast);

// Adds the loss over logits, softmax_with_cross_entropy, which begins the backward pass. mean_loss
// adds the mean of the output instead, if the task's head is not part of the model.
void cross_entropy(GraphBuilder& build, int logits, std::int64_t elements);
void mean_loss(GraphBuilder& build, int x, std::int64_t elements);

// Settings that the blocks of one model share.
struct Block {
  ArchitectureOptions options;
  std::int64_t sequence;
  bool norm_first;  // GPT-2 normalises the input of a half, BERT its output
  bool stored_out;  // weights are stored as [columns, inner]
  std::int64_t hidden = options.shape.hidden;
  std::int64_t tensor = options.parallel.tensor;  // ranks that share the heads and the inner half

  std::int64_t rows() const { return options.batch * sequence; }
  // Returns rows between products: own ones with sequence parallelism (Korthikanti et al., 2022).
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
  std::string all;                       // the one that the fused layer makes of all three
  std::string output;
  std::string attention_norm;
  std::string inner;
  std::string outer;
  std::string feedforward_norm;
};

// Adds x + attention(x), and x + feed-forward(x), with dropout and normalisation.
int attention(GraphBuilder& build, int x, const Block& block, const BlockNames& names);
int feedforward(GraphBuilder& build, int x, const Block& block, const BlockNames& names);

// Returns softmax(q k^T) v in one kernel, from [rows, heads, width] to the same. `flops` is both
// products in full, forward, and twice that backward. As is usual for a model's FLOPs, savings by a
// causal mask and recomputation in the backward pass do not count.
int flash_attention(GraphBuilder& build, int q, int k, int v, double flops, std::int64_t elements);

}  // namespace syncline::operators
