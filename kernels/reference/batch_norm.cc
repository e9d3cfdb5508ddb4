#include "kernels/reference/batch_norm.h"

#include <cassert>
#include <cmath>

namespace syncline::kernels {
namespace {

// One channel's values in every row.
std::size_t rows_of(const NormedPlane& plane) { return plane.x.size() / plane.channels; }

// Before the activation.
std::vector<double> pre_activations(const NormedPlane& plane, const NormedOutput& statistics) {
  std::vector<double> z(plane.x.size());
  for (std::size_t i = 0; i < z.size(); ++i) {
    const std::size_t c = i % plane.channels;
    const double deviation = std::sqrt(statistics.variance[c] + plane.epsilon);
    z[i] = plane.gamma[c] * (plane.x[i] - statistics.mean[c]) / deviation + plane.beta[c];
    if (!plane.residual.empty()) z[i] += plane.residual[i];
  }
  return z;
}

NormedOutput statistics_of(const NormedPlane& plane) {
  assert(plane.x.size() >= plane.channels && plane.channels > 0 && "at least one row");
  const auto rows = static_cast<double>(rows_of(plane));
  NormedOutput output;
  output.mean.resize(plane.channels);
  output.variance.resize(plane.channels);
  for (std::size_t i = 0; i < plane.x.size(); ++i) {
    output.mean[i % plane.channels] += plane.x[i] / rows;
  }
  for (std::size_t i = 0; i < plane.x.size(); ++i) {
    const double distance = plane.x[i] - output.mean[i % plane.channels];
    output.variance[i % plane.channels] += distance * distance / rows;
  }
  return output;
}

}  // namespace

NormedOutput batch_norm(const NormedPlane& plane) {
  NormedOutput output = statistics_of(plane);
  output.y = pre_activations(plane, output);
  for (auto& value : output.y) value = activated(plane.activation, value);
  return output;
}

NormedGradients batch_norm_gradients(const NormedPlane& plane, const std::vector<double>& dy) {
  const NormedOutput statistics = statistics_of(plane);
  const auto z = pre_activations(plane, statistics);
  const auto rows = static_cast<double>(rows_of(plane));
  const auto normalised = [&](std::size_t i) {
    const std::size_t c = i % plane.channels;
    return (plane.x[i] - statistics.mean[c]) / std::sqrt(statistics.variance[c] + plane.epsilon);
  };
  std::vector<double> dz(dy.size());
  NormedGradients gradients;
  gradients.dgamma.resize(plane.channels);
  gradients.dbeta.resize(plane.channels);
  for (std::size_t i = 0; i < dy.size(); ++i) {
    dz[i] = dy[i] * activation_slope(plane.activation, z[i]);
    gradients.dbeta[i % plane.channels] += dz[i];
    gradients.dgamma[i % plane.channels] += dz[i] * normalised(i);
  }
  // x moves y by itself, and through the mean and the deviation of its channel.
  gradients.dx.resize(dy.size());
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const std::size_t c = i % plane.channels;
    const double scale = plane.gamma[c] / std::sqrt(statistics.variance[c] + plane.epsilon);
    gradients.dx[i] =
        scale * (dz[i] - gradients.dbeta[c] / rows - normalised(i) * gradients.dgamma[c] / rows);
  }
  if (!plane.residual.empty()) gradients.dresidual = std::move(dz);
  return gradients;
}

}  // namespace syncline::kernels
