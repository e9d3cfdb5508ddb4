#include "core/plan/local_sgd.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

namespace syncline::plan {
namespace {

using Decay = Training::LearningRate::Decay;

}  // namespace

double learning_rate_at(const Training& training, std::int64_t step) {
  const auto& rate = training.learning_rate;
  if (step < rate.warmup) {
    const auto risen = static_cast<double>(std::max<std::int64_t>(1, step));
    return rate.initial * risen / static_cast<double>(rate.warmup);
  }
  if (rate.decay == Decay::kConstant || !(rate.steps || training.steps)) return rate.initial;
  const std::int64_t end = rate.steps ? *rate.steps : training.from + *training.steps;
  const auto falling = static_cast<double>(std::max<std::int64_t>(1, end - rate.warmup));
  const double left = 1.0 - std::min(1.0, static_cast<double>(step - rate.warmup) / falling);
  const double share = rate.decay == Decay::kCosine ? (1 - std::cos(std::numbers::pi * left)) / 2
                                                    : std::pow(left, rate.power);
  return rate.final + (rate.initial - rate.final) * share;
}

double loss_at(const Training& training, std::int64_t step) {
  const auto& loss = training.loss;
  const auto at = static_cast<double>(step);
  const auto after =
      std::find_if(loss.begin(), loss.end(), [&](const auto& point) { return point.first >= at; });
  if (after == loss.end()) return loss.back().second;
  if (after == loss.begin()) return loss.front().second;
  const auto before = after - 1;
  const double share = (at - before->first) / (after->first - before->first);
  return before->second + share * (after->second - before->second);
}

std::int64_t adaptive_period(const LocalSgd& local, double first_rate, double first_loss,
                             double rate, double loss) {
  const auto most = static_cast<double>(local.max_period);
  if (rate <= 0) return local.max_period;
  const double root =
      std::sqrt(first_rate * loss / (rate * first_loss) * static_cast<double>(local.init_period));
  return static_cast<std::int64_t>(std::clamp(std::ceil(root), 1.0, most));
}

std::vector<PeriodShare> period_shares(const LocalSgd& local, const Training& training) {
  // Steps count from 1; the run covers steps from + 1 .. from + steps.
  const std::int64_t first = training.from + 1;
  const std::int64_t last = training.from + training.steps.value_or(1);
  std::map<std::int64_t, std::int64_t> shares;
  const std::int64_t warm = std::clamp<std::int64_t>(local.begin_step, first - 1, last) - first + 1;
  if (warm > 0) shares[1] += warm;
  std::int64_t step = first + warm;
  std::int64_t left = 0;  // steps behind the last averaging
  if (!local.adaptive) {
    // Averaged in steps begin_step + period, begin_step + 2 * period, ...
    const std::int64_t since = (step - 1 - local.begin_step) % local.period;
    const std::int64_t to_next = local.period - since;
    if (step + to_next - 1 <= last) {
      shares[to_next] += to_next;
      step += to_next;
      const std::int64_t whole = (last - step + 1) / local.period * local.period;
      if (whole > 0) shares[local.period] += whole;
      step += whole;
    }
    left = last - step + 1;
  } else {
    const double first_rate = learning_rate_at(training, 1);
    const double first_loss = loss_at(training, 1);
    while (step <= last) {
      // The last averaging, in step - 1, has set the period.
      const std::int64_t period =
          adaptive_period(local, first_rate, first_loss, learning_rate_at(training, step - 1),
                          loss_at(training, step - 1));
      if (step + period - 1 > last) {
        left = last - step + 1;
        break;
      }
      shares[period] += period;
      step += period;
    }
  }
  std::vector<PeriodShare> list;
  for (const auto& [period, steps] : shares) list.push_back({period, steps});
  if (left > 0) list.push_back({left, left, false});
  return list;
}

}  // namespace syncline::plan
