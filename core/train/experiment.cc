#include "core/train/experiment.h"

#include <algorithm>

namespace syncline::train {
namespace {

constexpr int kHidden = 128;
// Of 4,096 weights, 16,384 and 1,280 those of the first two layers are sent sparse; the last, like
// the biases, is as small beside them as the tensors that Paddle leaves dense.
constexpr std::int64_t kMinElements = 4096;

TaskShape task() {
  TaskShape shape;
  shape.train = 65536;
  shape.noise = 0;
  return shape;
}

MlpShape network(const TaskShape& shape) {
  return {{shape.features, kHidden, kHidden, shape.classes}};
}

Course course(std::int64_t steps, double rate) {
  Course course;
  course.workers = 8;
  course.batch = 8;
  course.clip = 8;
  course.training.steps = steps;
  auto& falling = course.training.learning_rate;
  falling.initial = rate;
  falling.power = 3;
  falling.decay = Training::LearningRate::Decay::kPolynomial;
  return course;
}

// The ramp of Lin et al.: from 75 % to 99.9 %, here over the first fifth of the training.
TrainingMethod dgc(std::int64_t steps) {
  TrainingMethod method;
  method.name = "DGC";
  method.compression.codec = "dgc";
  method.compression.sparsity = {0.75, 0.9375, 0.984375, 0.996, 0.999};
  method.compression.rampup_step = std::max<std::int64_t>(1, steps / 5);
  method.compression.min_elements = kMinElements;
  return method;
}

void without_warm_up(TrainingMethod& method) {
  method.compression.sparsity = {0.999};
  method.compression.rampup_step = 1;
}

}  // namespace

Experiment compression_experiment(std::string name, std::int64_t steps, double rate) {
  Experiment experiment;
  experiment.name = std::move(name);
  experiment.task = task();
  experiment.network = network(experiment.task);
  experiment.course = course(steps, rate);
  TrainingMethod dense;
  dense.name = "dense momentum";
  experiment.methods.push_back(dense);

  const TrainingMethod whole = dgc(steps);
  const auto add = [&](const char* without, auto change) {
    TrainingMethod method = whole;
    method.name = without;
    change(method);
    experiment.methods.push_back(std::move(method));
  };
  add("DGC", [](TrainingMethod&) {});
  add("without momentum correction", [](TrainingMethod& m) { m.momentum_correction = false; });
  add("without masking", [](TrainingMethod& m) { m.masking = false; });
  add("without clipping", [](TrainingMethod& m) { m.clipping = false; });
  add("without warm-up", without_warm_up);
  add("without any of them", [](TrainingMethod& m) {
    m.momentum_correction = false;
    m.clipping = false;
    without_warm_up(m);
  });
  return experiment;
}

Experiment local_sgd_experiment(std::int64_t steps) {
  Experiment experiment;
  experiment.name = "LocalSGD";
  experiment.task = task();
  experiment.network = network(experiment.task);
  experiment.course = course(steps, 0.1);
  const auto add = [&](std::string name) -> LocalSgd& {
    TrainingMethod method;
    method.name = std::move(name);
    method.local_sgd.enabled = true;
    experiment.methods.push_back(std::move(method));
    return experiment.methods.back().local_sgd;
  };
  for (const int period : {1, 2, 4, 8, 16}) add("k=" + std::to_string(period)).period = period;
  add("adaptive").adaptive = true;
  return experiment;
}

}  // namespace syncline::train
