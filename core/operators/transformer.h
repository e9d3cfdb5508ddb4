// One transformer block as operators: attention and feed-forward, each with its residual and
// normalisation, either operator by operator as Paddle's nn.TransformerEncoderLayer launches them,
// or as the kernels inside FusedMultiHeadAttention and FusedFeedForward.
#pragma once

#include <string>
#include <vector>

#include "core/operators/architecture.h"
#include "core/operators/layers.h"

namespace syncline::operators {

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
