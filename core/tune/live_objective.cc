#include "core/tune/live_objective.h"

#include <cassert>
#include <cmath>
#include <cstdio>

#include "core/run/stragglers.h"

namespace syncline::tune {

Measurement summary(const std::vector<Seconds>& steps) {
  assert(!steps.empty() && "a mean is of something");
  const auto count = static_cast<double>(steps.size());
  Measurement result;
  for (const auto step : steps) result.step_time += step / count;
  if (steps.size() < 2) return result;
  double squares = 0;
  for (const auto step : steps) {
    squares += (step - result.step_time) * (step - result.step_time);
  }
  result.standard_error = std::sqrt(squares / (count - 1) / count);
  return result;
}

EmulatedObjective::EmulatedObjective(Truth truth, double noise)
    : truth_(std::move(truth)), noise_(noise) {}

std::string EmulatedObjective::source() const {
  char text[64];
  std::snprintf(text, sizeof text, "emulated, %g %% noise a step", noise_ * 100);
  return text;
}

Measurement EmulatedObjective::measure(const Candidate& candidate, const Evaluation& evaluation) {
  const Seconds truth = truth_(candidate);
  Jitter noise;
  if (noise_ > 0) {
    noise.kind = Jitter::Kind::kNormal;
    noise.relative = noise_;
  }
  std::vector<Seconds> steps;
  for (int step = 0; step < evaluation.steps; ++step) {
    steps.push_back(truth * run::jitter_factor(noise, evaluation.seed, evaluation.number, step));
  }
  return summary(steps);
}

}  // namespace syncline::tune
