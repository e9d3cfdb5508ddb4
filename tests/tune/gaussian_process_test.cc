// The process against what can be written down by hand, and its gradient against differences.
#include "studies/machines/gaussian_process.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace syncline::tune {
namespace {

Eigen::VectorXd vector_of(const std::vector<double>& values) {
  return Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
}

// Places on a line, and what was seen at some of them.
SeenPoints seen(const std::vector<double>& at, const std::vector<int>& points,
                const std::vector<double>& values) {
  return {vector_of(at), {false}, points, vector_of(values)};
}

Ensemble one_member(const std::vector<double>& means) {
  Ensemble ensemble;
  ensemble.log_weights = Eigen::VectorXd::Zero(1);
  ensemble.means = vector_of(means).transpose();
  return ensemble;
}

double matern(double distance) {
  const double q = std::sqrt(5.0) * distance;
  return (1 + q + q * q / 3) * std::exp(-q);
}

TEST(GaussianProcess, WithoutObservationsIsThePrior) {
  const Posterior prior = condition(seen({0, 1}, {}, {}), one_member({3, 4}), {0.5, {0.3}, 0.1});
  EXPECT_EQ(prior.mean()(1), 4);
  EXPECT_EQ(prior.deviations(0), 0.5);
}

// With one observation y at x: mean = m + k(x, x') (y - m) / (s^2 + n^2), variance likewise.
TEST(GaussianProcess, OneObservationIsTheClosedForm) {
  const double s = 0.7;
  const double n = 0.2;
  const Kernel kernel{s, {0.4}, n};
  const SeenPoints observed = seen({0, 0.3}, {0}, {1.5});
  const Posterior posterior = condition(observed, one_member({1, 2}), kernel);
  const double across = s * s * matern(0.3 / 0.4);
  EXPECT_NEAR(posterior.mean()(1), 2 + across * 0.5 / (s * s + n * n), 1e-12);
  EXPECT_NEAR(posterior.deviations(1), std::sqrt(s * s - across * across / (s * s + n * n)), 1e-12);
  const double density =
      std::log(std::exp(-0.5 * 0.25 / (s * s + n * n)) / std::sqrt(2 * M_PI * (s * s + n * n)));
  EXPECT_NEAR(log_evidence(observed, one_member({1, 2}), kernel), density, 1e-12);
}

// The same point seen n times is the point seen once with noise / sqrt(n).
TEST(GaussianProcess, RepeatsAverageTheNoise) {
  const auto member = one_member({0, 0});
  const Posterior four =
      condition(seen({0, 0.5}, {0, 0, 0, 0}, {1, 2, 3, 4}), member, {1, {0.5}, 0.6});
  const Posterior once = condition(seen({0, 0.5}, {0}, {2.5}), member, {1, {0.5}, 0.3});
  EXPECT_NEAR(four.mean()(1), once.mean()(1), 1e-12);
  EXPECT_NEAR(four.deviations(1), once.deviations(1), 1e-12);
}

TEST(GaussianProcess, OrderOfObservationsDoesNotMatter) {
  const auto member = one_member({0, 1, 0, 1});
  const std::vector<double> at{0, 0.2, 0.5, 1};
  const Kernel kernel{0.8, {0.3}, 0.1};
  const Posterior one = condition(seen(at, {0, 1, 3}, {0.1, 1.2, 0.7}), member, kernel);
  const Posterior other = condition(seen(at, {3, 0, 1}, {0.7, 0.1, 1.2}), member, kernel);
  EXPECT_NEAR((one.mean() - other.mean()).norm(), 0, 1e-12);
}

// On a categorical axis labels are equal or not; how their numbers lie means nothing.
TEST(GaussianProcess, CategoriesHaveNoOrder) {
  SeenPoints observed = seen({0, 1, 7}, {0}, {1});
  observed.categorical = {true};
  const Posterior posterior = condition(observed, one_member({0, 0, 0}), {1, {0.5}, 0.1});
  EXPECT_EQ(posterior.mean()(1), posterior.mean()(2));
  EXPECT_GT(posterior.mean()(1), 0);
}

// Two models far apart and one observation: Bayes' rule for the weights, each model's own mean.
TEST(GaussianProcess, ObservationsWeighTheMembers) {
  Ensemble ensemble;
  ensemble.log_weights = Eigen::Vector2d(std::log(0.25), std::log(0.75));
  ensemble.means.resize(2, 2);
  ensemble.means << 1, 10, 2, 20;
  const double s = 0.3;
  const double n = 0.4;  // together a deviation of 0.5
  const Posterior posterior = condition(seen({0, 1}, {0}, {1.2}), ensemble, {s, {1e-3}, n});
  const double first = 0.25 * std::exp(-0.5 * 0.04 / 0.25);
  const double second = 0.75 * std::exp(-0.5 * 0.64 / 0.25);
  EXPECT_NEAR(posterior.member_weights(0), first / (first + second), 1e-12);
  EXPECT_NEAR(posterior.member_weights.sum(), 1, 1e-12);
  EXPECT_NEAR(posterior.means(0, 1), 10, 1e-9);  // too far for the residual to reach
}

class RandomProcess : public testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    std::mt19937 random(GetParam());
    const auto draw = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
    observed_.at = Eigen::MatrixXd::NullaryExpr(9, 3, [&] { return draw(); });
    for (Eigen::Index i = 0; i < 9; ++i) observed_.at(i, 2) = static_cast<double>(i % 3);
    observed_.categorical = {false, false, true};
    observed_.points = {0, 3, 5, 3, 8, 1};
    ensemble_.log_weights = Eigen::VectorXd::NullaryExpr(4, [&] { return -2 * draw(); });
    ensemble_.means = Eigen::MatrixXd::NullaryExpr(4, 9, [&] { return draw(); });
    observed_.values = Eigen::VectorXd::NullaryExpr(6, [&] { return draw(); });
    kernel_ = {0.3 + draw(), {0.2 + draw(), 0.2 + draw(), 0.2 + draw()}, 0.1 + draw()};
  }
  SeenPoints observed_;
  Ensemble ensemble_;
  Kernel kernel_;
};

TEST_P(RandomProcess, GradientIsTheSlope) {
  Eigen::VectorXd gradient;
  log_evidence(observed_, ensemble_, kernel_, &gradient);
  ASSERT_EQ(gradient.size(), 5);
  for (Eigen::Index i = 0; i < 5; ++i) {
    constexpr double kStep = 1e-5;
    const auto moved = [&](double by) {
      Kernel kernel = kernel_;
      double& parameter = i == 0   ? kernel.deviation
                          : i == 4 ? kernel.noise
                                   : kernel.lengths[static_cast<std::size_t>(i - 1)];
      parameter *= std::exp(by);
      return log_evidence(observed_, ensemble_, kernel);
    };
    EXPECT_NEAR(gradient(i), (moved(kStep) - moved(-kStep)) / (2 * kStep), 1e-6) << i;
  }
}

TEST_P(RandomProcess, FittedKernelBeatsTheTypicalOne) {
  const Kernel fitted = fit_kernel(observed_, ensemble_, kernel_);
  EXPECT_GE(log_evidence(observed_, ensemble_, fitted),
            log_evidence(observed_, ensemble_, kernel_));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProcess, testing::Range(1U, 9U));

// Forty readings of one point tell the noise, whatever was thought of it before.
TEST(GaussianProcess, NoiseIsLearnt) {
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) values.push_back(i % 2 == 0 ? 0.05 : -0.05);
  for (const double thought : {0.03, 0.08}) {
    const Kernel fitted = fit_kernel(seen({0}, std::vector<int>(40, 0), values), one_member({0}),
                                     {0.02, {0.3}, thought});
    EXPECT_NEAR(fitted.noise, 0.05, 0.005) << thought;
  }
}

TEST(MinimiseInBox, StopsAtTheWall) {
  const auto bowl = [](const Eigen::VectorXd& at, Eigen::VectorXd& gradient) {
    gradient = 2 * (at - Eigen::Vector2d(3, -1));
    return (at - Eigen::Vector2d(3, -1)).squaredNorm();
  };
  const Minimum least = minimise_in_box(bowl, Eigen::Vector2d(0, 0), Eigen::Vector2d(-2, -2),
                                        Eigen::Vector2d(2, 2), 50);
  EXPECT_NEAR(least.at(0), 2, 1e-9);
  EXPECT_NEAR(least.at(1), -1, 1e-6);
  EXPECT_NEAR(least.value, 1, 1e-9);
}

TEST(MinimiseInBox, FollowsACurvedValley) {
  const auto rosenbrock = [](const Eigen::VectorXd& at, Eigen::VectorXd& gradient) {
    const double x = at(0);
    const double y = at(1);
    gradient = Eigen::Vector2d(-400 * x * (y - x * x) - 2 * (1 - x), 200 * (y - x * x));
    return 100 * (y - x * x) * (y - x * x) + (1 - x) * (1 - x);
  };
  const Minimum least = minimise_in_box(rosenbrock, Eigen::Vector2d(-1.2, 1),
                                        Eigen::Vector2d(-5, -5), Eigen::Vector2d(5, 5), 500);
  EXPECT_NEAR((least.at - Eigen::Vector2d(1, 1)).norm(), 0, 1e-3);
}

}  // namespace
}  // namespace syncline::tune
