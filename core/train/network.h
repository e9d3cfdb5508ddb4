// A small network to train: layers of weights and biases, ReLU between them, softmax and cross
// entropy at the end. Parameters and gradients are plain lists of floats, one a tensor, as codecs
// take them.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "core/train/task.h"

namespace syncline::train {

// Widths of the layers, the features first and the classes last. Layer i has two tensors: its
// weights (widths[i + 1] x widths[i], column by column) at 2i, its biases at 2i + 1.
struct MlpShape {
  std::vector<int> widths;

  int layers() const { return static_cast<int>(widths.size()) - 1; }
  std::int64_t parameters() const;
};

using Tensors = std::vector<std::vector<float>>;

// Weights of variance 2 / fan-in (He et al. 2015), biases 0.
Tensors initial_parameters(const MlpShape& network, std::uint64_t seed);

// The same tensors, all 0.
Tensors zeros(const MlpShape& network);

// The mean loss over the samples chosen, and its gradient, which replaces `gradient`'s values.
double loss_and_gradient(const MlpShape& network, const Tensors& parameters, const Samples& samples,
                         const std::vector<int>& chosen, Tensors& gradient);

struct Score {
  double loss = 0;
  double accuracy = 0;  // share of the samples whose class comes out first
};
Score score(const MlpShape& network, const Tensors& parameters, const Samples& samples);

}  // namespace syncline::train
