#include "core/train/network.h"

#include <cmath>

#include "core/random.h"

namespace syncline::train {
namespace {

using Eigen::MatrixXf;
using ConstMatrix = Eigen::Map<const MatrixXf>;
using ConstVector = Eigen::Map<const Eigen::VectorXf>;

std::size_t at(int index) { return static_cast<std::size_t>(index); }

ConstMatrix weights_of(const MlpShape& network, const Tensors& tensors, int layer) {
  return {tensors[at(2 * layer)].data(), network.widths[at(layer + 1)], network.widths[at(layer)]};
}

ConstVector biases_of(const MlpShape& network, const Tensors& tensors, int layer) {
  return {tensors[at(2 * layer + 1)].data(), network.widths[at(layer + 1)]};
}

// Each layer's output, the inputs first; the last one holds scores, before softmax.
std::vector<MatrixXf> forward(const MlpShape& network, const Tensors& parameters, MatrixXf inputs) {
  std::vector<MatrixXf> outputs{std::move(inputs)};
  for (int layer = 0; layer < network.layers(); ++layer) {
    MatrixXf next = weights_of(network, parameters, layer) * outputs.back();
    next.colwise() += biases_of(network, parameters, layer);
    if (layer + 1 < network.layers()) next = next.cwiseMax(0.0F);
    outputs.push_back(std::move(next));
  }
  return outputs;
}

// Turns scores into probabilities and gives the mean loss.
double softmax(MatrixXf& scores, const std::vector<int>& labels) {
  double loss = 0;
  for (Eigen::Index sample = 0; sample < scores.cols(); ++sample) {
    auto column = scores.col(sample);
    column.array() -= column.maxCoeff();
    const float label = column(labels[static_cast<std::size_t>(sample)]);
    column = column.array().exp();
    const float sum = column.sum();
    loss += std::log(static_cast<double>(sum)) - static_cast<double>(label);
    column /= sum;
  }
  return loss / static_cast<double>(scores.cols());
}

}  // namespace

std::int64_t MlpShape::parameters() const {
  std::int64_t sum = 0;
  for (int layer = 0; layer < layers(); ++layer) {
    sum += std::int64_t{widths[at(layer + 1)]} * (widths[at(layer)] + 1);
  }
  return sum;
}

Tensors zeros(const MlpShape& network) {
  Tensors tensors;
  for (int layer = 0; layer < network.layers(); ++layer) {
    tensors.emplace_back(at(network.widths[at(layer)]) * at(network.widths[at(layer + 1)]));
    tensors.emplace_back(at(network.widths[at(layer + 1)]));
  }
  return tensors;
}

Tensors initial_parameters(const MlpShape& network, std::uint64_t seed) {
  Tensors tensors = zeros(network);
  Random random(seed, 3);
  for (int layer = 0; layer < network.layers(); ++layer) {
    const double scale = std::sqrt(2.0 / network.widths[at(layer)]);
    for (float& weight : tensors[at(2 * layer)]) {
      weight = static_cast<float>(scale * random.normal());
    }
  }
  return tensors;
}

double loss_and_gradient(const MlpShape& network, const Tensors& parameters, const Samples& samples,
                         const std::vector<int>& chosen, Tensors& gradient) {
  const auto count = static_cast<Eigen::Index>(chosen.size());
  MatrixXf inputs(samples.inputs.rows(), count);
  std::vector<int> labels;
  for (Eigen::Index i = 0; i < count; ++i) {
    inputs.col(i) = samples.inputs.col(chosen[static_cast<std::size_t>(i)]);
    labels.push_back(samples.labels[at(chosen[static_cast<std::size_t>(i)])]);
  }
  std::vector<MatrixXf> outputs = forward(network, parameters, std::move(inputs));
  const double loss = softmax(outputs.back(), labels);

  // Of softmax with cross entropy: the probabilities, less 1 at the label.
  MatrixXf error = std::move(outputs.back());
  for (Eigen::Index i = 0; i < count; ++i) error(labels[static_cast<std::size_t>(i)], i) -= 1;
  error /= static_cast<float>(count);
  for (int layer = network.layers() - 1; layer >= 0; --layer) {
    const MatrixXf& input = outputs[at(layer)];
    auto& weights = gradient[at(2 * layer)];
    auto& biases = gradient[at(2 * layer + 1)];
    Eigen::Map<MatrixXf>(weights.data(), error.rows(), input.rows()).noalias() =
        error * input.transpose();
    Eigen::Map<Eigen::VectorXf>(biases.data(), error.rows()) = error.rowwise().sum();
    if (layer == 0) break;
    MatrixXf below = weights_of(network, parameters, layer).transpose() * error;
    error = (input.array() > 0).select(below, 0.0F);
  }
  return loss;
}

Score score(const MlpShape& network, const Tensors& parameters, const Samples& samples) {
  MatrixXf scores = std::move(forward(network, parameters, samples.inputs).back());
  Score result;
  int right = 0;
  for (Eigen::Index sample = 0; sample < scores.cols(); ++sample) {
    Eigen::Index best = 0;
    scores.col(sample).maxCoeff(&best);
    if (best == samples.labels[static_cast<std::size_t>(sample)]) ++right;
  }
  result.accuracy = static_cast<double>(right) / static_cast<double>(scores.cols());
  result.loss = softmax(scores, samples.labels);
  return result;
}

}  // namespace syncline::train
