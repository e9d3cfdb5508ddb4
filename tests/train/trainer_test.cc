// The trainer against closed forms: methods that must be the same training, gradients against
// differences, and what is counted.
#include "core/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"

namespace syncline::train {
namespace {

struct Small {
  TaskShape shape;
  Task task;
  MlpShape network;
  Course course;

  explicit Small(int workers = 4) {
    shape.features = 8;
    shape.classes = 4;
    shape.teacher = 6;
    shape.train = 512;
    shape.test = 256;
    task = make_task(shape, 1);
    network = {{8, 16, 4}};
    course.workers = workers;
    course.batch = 8;
    course.training.steps = 40;
    course.training.learning_rate.initial = 0.1;
    course.training.learning_rate.decay = Training::LearningRate::Decay::kPolynomial;
  }
};

TrainingMethod sparse(double sparsity) {
  TrainingMethod method;
  method.compression.codec = "dgc";
  method.compression.sparsity = {sparsity};
  method.compression.min_elements = 1;
  return method;
}

TrainingMethod local(std::int64_t period) {
  TrainingMethod method;
  method.local_sgd.enabled = true;
  method.local_sgd.period = period;
  return method;
}

TEST(MlpGradient, AgreesWithDifferences) {
  const Small small;
  const std::vector<int> batch{1, 5, 9, 200};
  Tensors parameters = initial_parameters(small.network, 3);
  Tensors gradient = zeros(small.network);
  Tensors unused = zeros(small.network);
  loss_and_gradient(small.network, parameters, small.task.train, batch, gradient);
  Random random(1, 1);
  for (std::size_t tensor = 0; tensor < parameters.size(); ++tensor) {
    for (int draw = 0; draw < 8; ++draw) {
      const std::size_t at = random.below(parameters[tensor].size());
      const float there = parameters[tensor][at];
      constexpr float kStep = 1e-3F;
      parameters[tensor][at] = there + kStep;
      const double above =
          loss_and_gradient(small.network, parameters, small.task.train, batch, unused);
      parameters[tensor][at] = there - kStep;
      const double below =
          loss_and_gradient(small.network, parameters, small.task.train, batch, unused);
      parameters[tensor][at] = there;
      // Losses come from fp32 scores: a few 1e-7 over two steps, and a corner of ReLU now and then.
      EXPECT_NEAR(static_cast<double>(gradient[tensor][at]), (above - below) / 0.002, 2e-3);
    }
  }
}

TEST(Trainer, TheSameSeedGivesTheSameTraining) {
  const Small small;
  const Trained once = train(small.task, small.network, small.course, sparse(0.9), 7);
  const Trained again = train(small.task, small.network, small.course, sparse(0.9), 7);
  const Trained other = train(small.task, small.network, small.course, sparse(0.9), 8);
  EXPECT_EQ(once.train.loss, again.train.loss);
  EXPECT_NE(once.train.loss, other.train.loss);
}

TEST(Trainer, LearnsWhatItIsTaught) {
  Small small;
  small.course.training.steps = 400;
  const Trained trained = train(small.task, small.network, small.course, {}, 1);
  EXPECT_GT(trained.test.accuracy, 0.8);
  EXPECT_LT(trained.train.loss, 0.5);
}

// All elements are sent at once, so nothing waits and no momentum is left after masking: plain SGD.
TEST(Trainer, SendingAllWithMaskingIsSgdWithoutMomentum) {
  Small small;
  const Trained all = train(small.task, small.network, small.course, sparse(0), 1);
  small.course.momentum = 0;
  const Trained plain = train(small.task, small.network, small.course, {}, 1);
  EXPECT_NEAR(all.train.loss, plain.train.loss, 1e-4);
}

// And without masking, or without momentum correction, momentum SGD.
TEST(Trainer, SendingAllWithoutMaskingIsMomentum) {
  const Small small;
  const Trained dense = train(small.task, small.network, small.course, {}, 1);
  TrainingMethod method = sparse(0);
  method.masking = false;
  EXPECT_NEAR(train(small.task, small.network, small.course, method, 1).train.loss,
              dense.train.loss, 1e-3);
  method.momentum_correction = false;
  EXPECT_NEAR(train(small.task, small.network, small.course, method, 1).train.loss,
              dense.train.loss, 1e-3);
}

// Momentum is linear: averaging parameters at every step is averaging gradients.
TEST(Trainer, AveragingParametersAtEveryStepIsAveragingGradients) {
  const Small small;
  const Trained dense = train(small.task, small.network, small.course, {}, 1);
  const Trained averaged = train(small.task, small.network, small.course, local(1), 1);
  EXPECT_NEAR(averaged.train.loss, dense.train.loss, 1e-3);
  EXPECT_EQ(averaged.sent_bytes, dense.sent_bytes);
}

TEST(Trainer, OneWorkerAloneTrainsAlikeHoweverRarelyItAverages) {
  const Small small(1);
  const Trained dense = train(small.task, small.network, small.course, {}, 1);
  for (const std::int64_t period : {1, 3, 16}) {
    const Trained trained = train(small.task, small.network, small.course, local(period), 1);
    EXPECT_EQ(trained.train.loss, dense.train.loss) << period;
  }
}

TEST(Trainer, CountsWhatIsSent) {
  const Small small;
  const auto parameters = static_cast<double>(small.network.parameters());
  const Trained dense = train(small.task, small.network, small.course, {}, 1);
  EXPECT_EQ(dense.synchronisations, 40);
  EXPECT_EQ(dense.sent_bytes, 40 * 4 * parameters);
  // Tensors of 128, 16, 64 and 4 elements: an eighth of each, 8 bytes an element.
  const Trained eighth = train(small.task, small.network, small.course, sparse(0.875), 1);
  EXPECT_EQ(eighth.sent_bytes, 40 * 8 * (16 + 2 + 8 + 1));
  // Dense before the ramp, and below min_elements throughout.
  TrainingMethod ramp = sparse(0.875);
  ramp.compression.rampup_begin_step = 10;
  ramp.compression.min_elements = 100;
  const Trained later = train(small.task, small.network, small.course, ramp, 1);
  EXPECT_EQ(later.sent_bytes, 10 * 4 * parameters + 30 * (8 * 16 + 4 * 84));
}

// The first step averages (it is begin_step), then every fifth of 39, and at the end.
TEST(Trainer, CountsLocalSgdsAveragings) {
  const Small small;
  const Trained trained = train(small.task, small.network, small.course, local(5), 1);
  EXPECT_EQ(trained.synchronisations, 1 + 7 + 1);
  ASSERT_EQ(trained.periods.size(), 2U);
  EXPECT_EQ(trained.periods[0].period, 1);
  EXPECT_EQ(trained.periods[0].steps, 1);
  EXPECT_EQ(trained.periods[1].period, 5);
  EXPECT_EQ(trained.periods[1].steps, 39);
}

// The rate falls to nothing, so the adaptive rule ends at its longest period.
TEST(Trainer, TheAdaptivePeriodGrowsAsTheRateFalls) {
  Small small;
  small.course.training.steps = 400;
  TrainingMethod method;
  method.local_sgd.enabled = true;
  method.local_sgd.adaptive = true;
  const Trained trained = train(small.task, small.network, small.course, method, 1);
  EXPECT_LT(trained.synchronisations, 400);
  EXPECT_GT(trained.synchronisations, 25);
  EXPECT_GT(trained.periods.back().period, 4);
  std::int64_t steps = 0;
  for (const auto& share : trained.periods) steps += share.steps;
  EXPECT_EQ(steps, 400);
}

// Looking on changes nothing, whoever trains on its own, and the last look is the result.
TEST(Trainer, LookingOnLeavesTheTrainingAsItIs) {
  for (const auto& method : {TrainingMethod{}, sparse(0.9), local(7)}) {
    Small small;
    const Trained alone = train(small.task, small.network, small.course, method, 3);
    small.course.look = 16;
    const Trained seen = train(small.task, small.network, small.course, method, 3);
    EXPECT_TRUE(alone.seen.empty());
    EXPECT_EQ(seen.train.loss, alone.train.loss);
    ASSERT_EQ(seen.seen.size(), 4U);  // 0, 16, 32, and 40 at the end
    EXPECT_EQ(seen.seen[2].step, 32);
    EXPECT_EQ(seen.seen.back().step, 40);
    EXPECT_EQ(seen.seen.back().test.loss, alone.test.loss);
    EXPECT_GT(seen.seen.front().test.loss, seen.seen.back().test.loss);
  }
}

TEST(Trainer, SaysWhereTheLossIsNoNumberAnyMore) {
  Small small;
  small.course.training.learning_rate.initial = 1e20;
  const Trained trained = train(small.task, small.network, small.course, {}, 1);
  EXPECT_TRUE(trained.diverged);
  EXPECT_LT(trained.steps, 40);
}

}  // namespace
}  // namespace syncline::train
