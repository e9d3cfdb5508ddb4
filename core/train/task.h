// Something to learn, made from a seed: points of a normal distribution, each with the class that a
// random network (the teacher) gives it. A student of the same kind can learn it, but not at once.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

namespace syncline::train {

struct Samples {
  Eigen::MatrixXf inputs;   // features x samples
  std::vector<int> labels;  // 0 .. classes - 1
};

struct Task {
  int features = 0;
  int classes = 0;
  Samples train;
  Samples test;
};

struct TaskShape {
  int features = 32;
  int classes = 10;
  int teacher = 24;  // the teacher's hidden units
  int train = 8192;  // samples
  int test = 2048;
  double noise = 0.05;  // share of the training labels that are drawn at random
};

Task make_task(const TaskShape& shape, std::uint64_t seed);

}  // namespace syncline::train
