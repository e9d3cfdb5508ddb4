#include "core/train/task.h"

#include <cmath>

#include "core/random.h"

namespace syncline::train {
namespace {

Eigen::MatrixXf normal_matrix(int rows, int columns, double scale, Random& random) {
  Eigen::MatrixXf matrix(rows, columns);
  for (int column = 0; column < columns; ++column) {
    for (int row = 0; row < rows; ++row) {
      matrix(row, column) = static_cast<float>(scale * random.normal());
    }
  }
  return matrix;
}

}  // namespace

Task make_task(const TaskShape& shape, std::uint64_t seed) {
  Random weights(seed, 0);
  Random points(seed, 1);
  Random mistakes(seed, 2);
  const Eigen::MatrixXf hidden =
      normal_matrix(shape.teacher, shape.features, 2 / std::sqrt(shape.features), weights);
  const Eigen::MatrixXf output = normal_matrix(shape.classes, shape.teacher, 1, weights);

  const auto samples = [&](int count, double noise) {
    Samples set;
    set.inputs = normal_matrix(shape.features, count, 1, points);
    const Eigen::MatrixXf scores = output * (hidden * set.inputs).array().tanh().matrix();
    for (int sample = 0; sample < count; ++sample) {
      Eigen::Index best = 0;
      scores.col(sample).maxCoeff(&best);
      if (mistakes.uniform() < noise) {
        best = static_cast<Eigen::Index>(mistakes.below(static_cast<std::size_t>(shape.classes)));
      }
      set.labels.push_back(static_cast<int>(best));
    }
    return set;
  };
  Task task;
  task.features = shape.features;
  task.classes = shape.classes;
  task.train = samples(shape.train, shape.noise);
  task.test = samples(shape.test, 0);
  return task;
}

}  // namespace syncline::train
