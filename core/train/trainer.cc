#include "core/train/trainer.h"

#include <cassert>
#include <cmath>
#include <map>

#include "core/compress/codec.h"
#include "core/compress/momentum_correction.h"
#include "core/compress/sparsity.h"
#include "core/train/worker_batches.h"

namespace syncline::train {
namespace {

constexpr double kDenseBytes = 4;

// a += scale * b.
void add(std::vector<float>& a, float scale, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += scale * b[i];
}

// velocity = momentum * velocity + gradient, then parameters -= rate * velocity.
void momentum_step(std::vector<float>& parameters, std::vector<float>& velocity,
                   const std::vector<float>& gradient, float momentum, float rate) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    velocity[i] = momentum * velocity[i] + gradient[i];
    parameters[i] -= rate * velocity[i];
  }
}

void clip(Tensors& gradient, double most) {
  double sum = 0;
  for (const auto& tensor : gradient) {
    for (const float value : tensor) sum += static_cast<double>(value) * static_cast<double>(value);
  }
  if (sum <= most * most) return;
  const auto factor = static_cast<float>(most / std::sqrt(sum));
  for (auto& tensor : gradient) {
    for (float& value : tensor) value *= factor;
  }
}

// One worker of a training with sparse exchange: what it has not sent yet.
struct Waiting {
  Tensors velocity;
  Tensors residual;
};

class Run {
 public:
  Run(const Task& task, const MlpShape& network, const Course& course, const TrainingMethod& method,
      std::uint64_t seed)
      : task_(task),
        network_(network),
        course_(course),
        method_(method),
        batches_(task.train.labels.size(), static_cast<std::size_t>(course.batch), seed),
        momentum_(static_cast<float>(course.momentum)) {
    const std::size_t workers = static_cast<std::size_t>(course.workers);
    parameters_ = initial_parameters(network, seed);
    velocity_ = zeros(network);
    gradients_.assign(workers, zeros(network));
    if (sparse()) waiting_.assign(workers, {zeros(network), zeros(network)});
    if (method.local_sgd.enabled) {
      own_parameters_.assign(workers, parameters_);
      own_velocity_.assign(workers, velocity_);
    }
  }

  Trained trained() {
    assert(course_.training.steps && "a course has a length");
    Trained result;
    for (std::int64_t step = 0; step < *course_.training.steps; ++step) {
      if (course_.look > 0 && step % course_.look == 0) look(step, result);
      rate_ = plan::learning_rate_at(course_.training, step);
      loss_ = 0;
      const double most = course_.clip / std::sqrt(static_cast<double>(course_.workers));
      for (std::size_t worker = 0; worker < gradients_.size(); ++worker) {
        const Tensors& at = own_parameters_.empty() ? parameters_ : own_parameters_[worker];
        loss_ += loss_and_gradient(network_, at, task_.train, batches_.next(), gradients_[worker]);
        if (course_.clip > 0 && method_.clipping) clip(gradients_[worker], most);
      }
      loss_ /= course_.workers;
      if (!std::isfinite(loss_)) {
        result.diverged = true;
        return result;
      }
      if (method_.local_sgd.enabled) {
        local_step(step + 1, result);
      } else {
        shared_step(step, result);
      }
      ++result.steps;
    }
    if (method_.local_sgd.enabled) {
      if (last_averaging_ < result.steps) average(result);
      for (const auto& [period, steps] : periods_) result.periods.push_back({period, steps});
    }
    result.train = score(network_, parameters_, task_.train);
    result.test = score(network_, parameters_, task_.test);
    if (course_.look > 0) result.seen.push_back({result.steps, result.test});
    result.diverged = !std::isfinite(result.train.loss) || !std::isfinite(result.test.loss);
    return result;
  }

 private:
  bool sparse() const { return !method_.compression.codec.empty(); }
  float rate() const { return static_cast<float>(rate_); }

  void look(std::int64_t step, Trained& result) const {
    result.seen.push_back({step, score(network_, mean_parameters(), task_.test)});
  }

  // Of the workers, wherever each of them is.
  Tensors mean_parameters() const {
    if (own_parameters_.empty()) return parameters_;
    Tensors means = zeros(network_);
    for (std::size_t tensor = 0; tensor < means.size(); ++tensor) {
      for (const auto& own : own_parameters_) add(means[tensor], 1, own[tensor]);
      for (float& value : means[tensor]) value /= static_cast<float>(course_.workers);
    }
    return means;
  }

  // Gradients are exchanged, sparse or dense, and every worker takes the same step.
  void shared_step(std::int64_t step, Trained& result) {
    const int index = sparse() ? compress::sparsity_index(method_.compression, step) : -1;
    Tensors sum = zeros(network_);
    std::vector<bool> sent_sparse(sum.size(), false);
    for (std::size_t tensor = 0; tensor < sum.size(); ++tensor) {
      const auto elements = static_cast<std::int64_t>(sum[tensor].size());
      sent_sparse[tensor] = index >= 0 && elements >= method_.compression.min_elements;
      if (sent_sparse[tensor]) {
        const double sparsity = method_.compression.sparsity[static_cast<std::size_t>(index)];
        const std::int64_t kept = compress::kept_elements(elements, sparsity);
        for (std::size_t worker = 0; worker < gradients_.size(); ++worker) {
          codec_->add(encoded(worker, tensor, kept), sum[tensor]);
        }
        result.sent_bytes += static_cast<double>(codec_->encoded_bytes(elements, kept));
      } else {
        for (const auto& gradient : gradients_) add(sum[tensor], 1, gradient[tensor]);
        result.sent_bytes += kDenseBytes * static_cast<double>(elements);
      }
      for (float& value : sum[tensor]) value /= static_cast<float>(course_.workers);
    }
    for (std::size_t tensor = 0; tensor < sum.size(); ++tensor) {
      if (sent_sparse[tensor] && method_.momentum_correction) {
        add(parameters_[tensor], -rate(), sum[tensor]);  // the momentum is in what was sent
      } else {
        momentum_step(parameters_[tensor], velocity_[tensor], sum[tensor], momentum_, rate());
      }
    }
    ++result.synchronisations;
  }

  // Takes the gradient in and gives what the worker sends of it.
  compress::Encoded encoded(std::size_t worker, std::size_t tensor, std::int64_t kept) {
    const auto& gradient = gradients_[worker][tensor];
    auto& residual = waiting_[worker].residual[tensor];
    if (!method_.momentum_correction) {
      add(residual, 1, gradient);
      return codec_->encode(residual, kept);
    }
    auto& velocity = waiting_[worker].velocity[tensor];
    compress::accumulate(gradient, {}, {.momentum = momentum_}, velocity, residual);
    compress::Encoded sent = codec_->encode(residual, kept);
    if (method_.masking) {
      for (const std::int32_t index : sent.indices) velocity[static_cast<std::size_t>(index)] = 0;
    }
    return sent;
  }

  // Steps count from 1 here.
  void local_step(std::int64_t step, Trained& result) {
    for (std::size_t worker = 0; worker < gradients_.size(); ++worker) {
      for (std::size_t tensor = 0; tensor < parameters_.size(); ++tensor) {
        momentum_step(own_parameters_[worker][tensor], own_velocity_[worker][tensor],
                      gradients_[worker][tensor], momentum_, rate());
      }
    }
    const LocalSgd& local = method_.local_sgd;
    if (step == 1) {
      first_rate_ = rate_;
      first_loss_ = loss_;
      if (!local.adaptive) period_ = local.period;
    }
    const bool warm = step <= local.begin_step;
    ++periods_[warm ? 1 : period_];
    if (!warm && step - last_averaging_ < period_) return;
    average(result);
    last_averaging_ = step;
    if (local.adaptive && step >= local.begin_step) {
      period_ = plan::adaptive_period(local, first_rate_, first_loss_, rate_, loss_);
    }
  }

  void average(Trained& result) {
    parameters_ = mean_parameters();
    for (auto& own : own_parameters_) own = parameters_;
    ++result.synchronisations;
    result.sent_bytes += kDenseBytes * static_cast<double>(network_.parameters());
  }

  const Task& task_;
  const MlpShape& network_;
  const Course& course_;
  const TrainingMethod& method_;
  WorkerBatches batches_;
  const compress::Codec* codec_ = compress::find_codec("dgc");
  float momentum_;
  double rate_ = 0;
  double loss_ = 0;  // of this step, all workers' mean
  Tensors parameters_;
  Tensors velocity_;                // of what is exchanged dense
  std::vector<Tensors> gradients_;  // by worker
  std::vector<Waiting> waiting_;    // likewise; empty without compression
  // LocalSGD: by worker.
  std::vector<Tensors> own_parameters_;
  std::vector<Tensors> own_velocity_;
  std::int64_t period_ = 1;
  std::int64_t last_averaging_ = 0;
  double first_rate_ = 0;
  double first_loss_ = 0;
  std::map<std::int64_t, std::int64_t> periods_;
};

}  // namespace

Trained train(const Task& task, const MlpShape& network, const Course& course,
              const TrainingMethod& method, std::uint64_t seed) {
  return Run(task, network, course, method, seed).trained();
}

}  // namespace syncline::train
