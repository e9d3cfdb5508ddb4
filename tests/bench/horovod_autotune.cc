// Two knobs, the fusion threshold in [0, 64] MiB and the cycle time in [1, 100] ms. 21 evaluations:
// four fixed start points, then 17 proposals of the highest expected improvement under a Gaussian
// process with a squared exponential on the raw units (MiB and ms share one length), z-normalised
// scores and noise 0.8. A score is bytes reduced per second, the median of five means of ten steps.
// Its answer is the point with the best observed score. Booleans, which multiply its evaluations,
// are left out. Source: horovod/horovod at 2626dc87, parameter_manager.cc and optim/.
#include "tests/bench/horovod_autotune.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "core/base/statistics.h"
#include "core/plan/fusion.h"
#include "studies/machines/gaussian_process.h"

namespace syncline::test {
namespace {

constexpr int kEvaluations = 21;
constexpr std::array<HorovodKnobs, 4> kStarts{{{4, 5}, {32, 50}, {16, 25}, {8, 10}}};
constexpr double kNoise = 0.8;
constexpr double kMargin = 0.01;  // xi of the expected improvement
constexpr int kRestarts = 25;
constexpr int kIterations = 100;  // of L-BFGS
constexpr int kMeans = 5;
constexpr int kStepsAMean = 10;

// Horovod's process: rows of x are (MiB, ms), y the normalised scores.
class RawProcess {
 public:
  RawProcess(const Eigen::MatrixXd& x, const Eigen::VectorXd& y) : x_(x) {
    fit(y);
    const Eigen::MatrixXd kernel = covariance(length_, deviation_);
    const Eigen::MatrixXd noisy = with_noise(kernel);
    inverse_ = noisy.inverse();
    weights_ = inverse_ * y;
    incumbent_ = (kernel * weights_).maxCoeff();
  }

  // Of the expected improvement at (MiB, ms), and its gradient.
  double improvement(const Eigen::VectorXd& at, Eigen::VectorXd& gradient) const {
    const double square = length_ * length_;
    const Eigen::MatrixXd apart = x_.rowwise() - at.transpose();
    const Eigen::VectorXd k =
        (deviation_ * deviation_) * (-apart.rowwise().squaredNorm().array() / (2 * square)).exp();
    const Eigen::VectorXd solved = inverse_ * k;
    const double variance = deviation_ * deviation_ - k.dot(solved);
    gradient = Eigen::VectorXd::Zero(2);
    if (variance <= 1e-12) return 0;
    const double deviation = std::sqrt(variance);
    const double gain = k.dot(weights_) - incumbent_ - kMargin;
    const double z = gain / deviation;
    const double density = normal_density(z);
    const double below = normal_distribution(z);
    for (Eigen::Index axis = 0; axis < 2; ++axis) {
      const Eigen::VectorXd slope = k.cwiseProduct(apart.col(axis)) / square;
      gradient(axis) = below * slope.dot(weights_) - density * slope.dot(solved) / deviation;
    }
    return gain * below + deviation * density;
  }

 private:
  Eigen::MatrixXd covariance(double length, double deviation) const {
    Eigen::MatrixXd matrix(x_.rows(), x_.rows());
    for (Eigen::Index i = 0; i < x_.rows(); ++i) {
      const Eigen::VectorXd squares = (x_.rowwise() - x_.row(i)).rowwise().squaredNorm();
      matrix.col(i) = deviation * deviation * (-squares.array() / (2 * length * length)).exp();
    }
    return matrix;
  }

  static Eigen::MatrixXd with_noise(Eigen::MatrixXd matrix) {
    matrix.diagonal().array() += kNoise * kNoise;
    return matrix;
  }

  // Length and deviation from (1, 1) on the negative log likelihood, with its finite differences.
  void fit(const Eigen::VectorXd& y) {
    const auto loss = [&](const Eigen::VectorXd& at) {
      const Eigen::LLT<Eigen::MatrixXd> root(with_noise(covariance(at(0), at(1))));
      return 0.5 * y.dot(root.solve(y)) + root.matrixLLT().diagonal().array().log().sum();
    };
    const auto sloped = [&](const Eigen::VectorXd& at, Eigen::VectorXd& gradient) {
      constexpr double kDifference = 1e-8;
      const double value = loss(at);
      gradient.resize(2);
      for (Eigen::Index i = 0; i < 2; ++i) {
        Eigen::VectorXd beside = at;
        beside(i) += kDifference;
        gradient(i) = (loss(beside) - value) / kDifference;
      }
      return value;
    };
    const Eigen::VectorXd low = Eigen::VectorXd::Constant(2, 1e-3);
    const Eigen::VectorXd high = Eigen::VectorXd::Constant(2, 1e3);
    const auto best =
        tune::minimise_in_box(sloped, Eigen::VectorXd::Ones(2), low, high, kIterations).at;
    length_ = best(0);
    deviation_ = best(1);
  }

  Eigen::MatrixXd x_;
  double length_ = 1;
  double deviation_ = 1;
  Eigen::MatrixXd inverse_;
  Eigen::VectorXd weights_;
  double incumbent_ = 0;
};

HorovodKnobs proposal(const std::vector<HorovodTrial>& trials, std::mt19937_64& random) {
  const auto n = static_cast<Eigen::Index>(trials.size());
  Eigen::MatrixXd x(n, 2);
  Eigen::VectorXd y(n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const auto& trial = trials[static_cast<std::size_t>(i)];
    x.row(i) << trial.knobs.threshold_mib, trial.knobs.cycle_ms;
    y(i) = trial.score;
  }
  y.array() -= y.mean();
  const double spread = std::sqrt(y.squaredNorm() / static_cast<double>(n));
  if (spread > 0) y /= spread;
  const RawProcess process(x, y);
  const auto loss = [&](const Eigen::VectorXd& at, Eigen::VectorXd& gradient) {
    const double value = process.improvement(at, gradient);
    gradient = -gradient;
    return -value;
  };
  const Eigen::Vector2d low(0, 1);
  const Eigen::Vector2d high(64, 100);
  tune::Minimum best{low, INFINITY};
  for (int restart = 0; restart < kRestarts; ++restart) {
    // 53 bits, so the draw is the same whichever standard library it is built with.
    const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
    Eigen::VectorXd at(2);
    at(0) = low(0) + (high(0) - low(0)) * uniform();
    at(1) = low(1) + (high(1) - low(1)) * uniform();
    const tune::Minimum reached = tune::minimise_in_box(loss, at, low, high, kIterations);
    if (reached.value < best.value) best = reached;
  }
  return {best.at(0), best.at(1)};
}

double score_of(double bytes, const std::function<Seconds()>& step) {
  std::array<double, kMeans> scores{};
  for (auto& score : scores) {
    Seconds sum = 0;
    for (int i = 0; i < kStepsAMean; ++i) sum += step();
    score = bytes * kStepsAMean / sum;
  }
  std::nth_element(scores.begin(), scores.begin() + kMeans / 2, scores.end());
  return scores[kMeans / 2];
}

// The finish of the stream when the background loop's first tick comes at `phase`.
Seconds finish_with_ticks(const FusionProblem& gradients, const AffineCost& cost, Bytes limit,
                          Seconds cycle, Seconds phase) {
  std::vector<plan::OnWire> wire;
  for (const double bytes : gradients.bytes) {
    wire.push_back({DType::kFp32, static_cast<Bytes>(bytes)});
  }
  Seconds done = 0;
  for (const auto& [tick, groups] :
       plan::tick_releases(gradients.ready, wire, limit, cycle, phase)) {
    for (const auto& group : groups) {
      double packed = 0;
      for (const int i : group) packed += gradients.bytes[static_cast<std::size_t>(i)];
      done = std::max(done, tick) + cost.latency + cost.seconds_per_byte * packed;
    }
  }
  return std::max(done, gradients.ready.back());
}

}  // namespace

Seconds horovod_step_time(const StepTrace& trace, const AffineCost& cost, const HorovodKnobs& knobs,
                          int phases) {
  const auto limit = static_cast<Bytes>(knobs.threshold_mib * static_cast<double>(kMiB));
  const Seconds cycle = knobs.cycle_ms * kMillisecond;
  Seconds sum = 0;
  for (int phase = 0; phase < phases; ++phase) {
    sum += finish_with_ticks(trace.gradients, cost, limit, cycle, cycle * (phase + 0.5) / phases);
  }
  return trace.forward + sum / phases + trace.update;
}

HorovodTuning emulate_horovod_autotune(double bytes_a_step, std::uint64_t seed,
                                       const std::function<Seconds(const HorovodKnobs&)>& measure) {
  std::mt19937_64 random(seed);
  HorovodTuning tuning;
  while (tuning.trials.size() < kEvaluations) {
    const std::size_t done = tuning.trials.size();
    HorovodTrial trial;
    trial.knobs = done < kStarts.size() ? kStarts[done] : proposal(tuning.trials, random);
    trial.score = score_of(bytes_a_step, [&] { return measure(trial.knobs); });
    tuning.trials.push_back(trial);
    if (trial.score > tuning.trials[tuning.best].score) tuning.best = done;
  }
  return tuning;
}

}  // namespace syncline::test
