#include "studies/calibrate/scale_fit.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <optional>

#include "core/base/statistics.h"

namespace syncline::calibrate {
namespace {

constexpr int kMaxSegments = 7;
constexpr std::size_t kMaxKnots = 48;
constexpr std::size_t kMaxOmitted = 64;

using Points = std::vector<cost::MeasuredPoint>;

double bytes_of(const cost::MeasuredPoint& point) { return static_cast<double>(point.size); }

// Sums over points [0, i) for least squares of a line on relative errors.
class Sums {
 public:
  explicit Sums(const Points& points) : points_(points), sums_(points.size() + 1) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double w = 1 / points[i].time;
      const double x = bytes_of(points[i]) * w;
      const std::array<double, 5> add = {w * w, w * x, x * x, w, x};
      for (std::size_t k = 0; k < add.size(); ++k) sums_[i + 1][k] = sums_[i][k] + add[k];
    }
  }

  // Returns the line through points [begin, end) with latency and slope of at least 0, and its sum
  // of squared relative errors.
  std::pair<cost::SizeLine, double> line(std::size_t begin, std::size_t end) const {
    std::array<double, 5> s{};
    for (std::size_t k = 0; k < s.size(); ++k) s[k] = sums_[end][k] - sums_[begin][k];
    const auto [a, b, c, u, v] = s;
    const auto count = static_cast<double>(end - begin);
    cost::SizeLine line{bytes_of(points_[begin]), bytes_of(points_[end - 1])};
    const double determinant = a * c - b * b;
    if (determinant > 1e-10 * a * c) {
      line.latency = (u * c - v * b) / determinant;
      line.seconds_per_byte = (a * v - b * u) / determinant;
      if (line.latency >= 0 && line.seconds_per_byte >= 0) {
        return {line, std::max(0.0, count - line.latency * u - line.seconds_per_byte * v)};
      }
    }
    const double flat = std::max(0.0, count - u * u / a);
    const double steep = std::max(0.0, count - v * v / c);
    line.latency = flat < steep ? u / a : 0;
    line.seconds_per_byte = flat < steep ? 0 : v / c;
    return {line, std::min(flat, steep)};
  }

 private:
  const Points& points_;
  std::vector<std::array<double, 5>> sums_;
};

// Returns the best fits of 1, 2, ... segments of at least two points each, by dynamic programming
// over the knots (Bellman 1961, "On the approximation of curves by line segments"). The best k
// segments up to a knot are the best k - 1 up to an earlier one, and a line from there.
std::vector<cost::SizeCostModel> fit_segments(const Points& points) {
  const Sums sums(points);
  auto knots = spread_points(points, kMaxKnots);  // possible ends of segments
  const std::size_t n = knots.size();
  knots.push_back(points.size());
  constexpr double kNone = std::numeric_limits<double>::infinity();
  // least[k][j]: squares of the first j stretches cut into k segments; from: begin of the last one.
  std::vector<std::vector<double>> least(kMaxSegments + 1, std::vector<double>(n + 1, kNone));
  std::vector<std::vector<std::size_t>> from(kMaxSegments + 1, std::vector<std::size_t>(n + 1));
  least[0][0] = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j <= n; ++j) {
      if (knots[j] - knots[i] < 2 && points.size() > 1) continue;
      const double squares = sums.line(knots[i], knots[j]).second;
      for (std::size_t k = 1; k <= kMaxSegments; ++k) {
        if (least[k - 1][i] + squares < least[k][j]) {
          least[k][j] = least[k - 1][i] + squares;
          from[k][j] = i;
        }
      }
    }
  }
  // Each count's segments, read back from the last one.
  std::vector<cost::SizeCostModel> cost_models;
  for (std::size_t k = 1; k <= kMaxSegments && least[k][n] < kNone; ++k) {
    cost::SizeCostModel& model = cost_models.emplace_back();
    std::size_t end = n;
    for (std::size_t left = k; left > 0; --left) {
      const std::size_t begin = from[left][end];
      model.lines.insert(model.lines.begin(), sums.line(knots[begin], knots[end]).first);
      end = begin;
    }
  }
  return cost_models;
}

double relative_error(const cost::SizeCostModel& model, const cost::MeasuredPoint& point) {
  return cost::size_time(model, bytes_of(point)) / point.time - 1;
}

double squares_of(const cost::SizeCostModel& model, const Points& points) {
  double sum = 0;
  for (const auto& point : points) {
    const double error = relative_error(model, point);
    sum += error * error;
  }
  return sum;
}

// Returns the points for which each line is the lowest.
std::vector<Points> shared_out(const Points& points, const std::vector<cost::SizeLine>& lines) {
  std::vector<Points> own(lines.size());
  for (const auto& point : points) {
    std::size_t lowest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < lines.size(); ++k) {
      const double time = lines[k].latency + lines[k].seconds_per_byte * bytes_of(point);
      if (time < least) {
        least = time;
        lowest = k;
      }
    }
    own[lowest].push_back(point);
  }
  return own;
}

// Fits the lower envelope of the lines in `start`. Each point belongs to the line that is lowest
// there; each line is fitted to its points, until all stay the same.
cost::SizeCostModel fit_envelope(const Points& points, const cost::SizeCostModel& start) {
  cost::SizeCostModel model = start;
  model.form = cost::SizeCostModel::Form::kEnvelope;
  cost::SizeCostModel best = model;
  double best_squares = squares_of(model, points);
  for (int round = 0; round < 30; ++round) {
    const auto own = shared_out(points, model.lines);
    for (std::size_t k = 0; k < own.size(); ++k) {
      if (!own[k].empty()) model.lines[k] = Sums(own[k]).line(0, own[k].size()).first;
    }
    const double squares = squares_of(model, points);
    if (squares >= best_squares * (1 - 1e-9)) break;
    best = model;
    best_squares = squares;
  }
  std::sort(best.lines.begin(), best.lines.end(),
            [](const cost::SizeLine& a, const cost::SizeLine& b) { return a.from < b.from; });
  return best;
}

// Returns true if squares_of() a sum of powers is certainly `most` or more. Square roots take a
// tenth of the time of std::pow, and differ from it by less than 1e-14 of the result.
bool certainly_above(const cost::SizeCostModel& model, const Points& points, double most) {
  const bool squares = model.exponent == 2;
  assert((squares || model.exponent == 4) && "a power that square roots can take");
  const auto power = [&](double x) { return squares ? x * x : x * x * (x * x); };
  const cost::SizeLine& line = model.lines.front();
  const double latency = power(line.latency);
  double sum = 0;
  for (const auto& point : points) {
    const double root = std::sqrt(latency + power(line.seconds_per_byte * bytes_of(point)));
    const double error = (squares ? root : std::sqrt(root)) / point.time - 1;
    sum += error * error;
  }
  constexpr double kMargin = 1e-12;
  return sum - most > kMargin * (static_cast<double>(points.size()) + sum);
}

// Fits a sum of powers by pattern search: the line's two parameters, each from one end of the
// table, are moved by factors that shrink once no move improves the fit.
cost::SizeCostModel fit_sum(const Points& points, const cost::SizeCostModel& line,
                            double exponent) {
  cost::SizeCostModel model = line;
  model.form = cost::SizeCostModel::Form::kSum;
  model.exponent = exponent;
  cost::SizeLine& only = model.lines.front();
  only.latency = points.front().time;
  only.seconds_per_byte = points.back().time / bytes_of(points.back());
  double least = squares_of(model, points);
  for (double step = 0.5; step > 1e-4;) {
    bool moved = false;
    for (double* value : {&only.latency, &only.seconds_per_byte}) {
      for (const double factor : {1 + step, 1 / (1 + step)}) {
        const double old = *value;
        *value *= factor;
        const bool above = certainly_above(model, points, least);
        const double squares = above ? least : squares_of(model, points);
        if (squares < least) {
          least = squares;
          moved = true;
        } else {
          *value = old;
        }
      }
    }
    if (!moved) step /= 2;
  }
  return model;
}

// Returns the points at the knots, to limit the cost of iterative fits.
Points at_knots(const Points& points) {
  Points kept;
  for (const std::size_t knot : spread_points(points, kMaxKnots)) kept.push_back(points[knot]);
  if (kept.back().size != points.back().size) kept.push_back(points.back());
  return kept;
}

// All candidates by name, so that two fits can be compared.
using Candidates = std::map<std::string, cost::SizeCostModel>;

// Returns the forms that a table may have, each fitted to the points.
Candidates candidates(const Points& points) {
  Candidates cost_models;
  const Points few = at_knots(points);
  for (const cost::SizeCostModel& model : fit_segments(points)) {
    const auto lines = model.lines.size();
    cost_models["segments " + std::to_string(lines)] = model;
    if (lines == 2 || lines == 3) {
      cost_models["envelope " + std::to_string(lines)] = fit_envelope(few, model);
    }
    if (lines == 1 && points.size() > 1) {
      for (const double exponent : {2.0, 4.0}) {
        cost_models["sum " + std::to_string(exponent)] = fit_sum(few, model, exponent);
      }
    }
  }
  return cost_models;
}

// Returns the median error of the sizes of 64 KiB and more; of all sizes if there are none.
double median_error(const cost::SizeCostModel& model, const Points& points) {
  constexpr Bytes kLarge = 64 * kKiB;
  const bool large = points.back().size >= kLarge;
  std::vector<double> errors;
  for (const auto& point : points) {
    if (large && point.size < kLarge) continue;
    errors.push_back(std::abs(relative_error(model, point)));
  }
  return median(std::move(errors));
}

// A candidate's errors on points left out of its fit.
struct LeftOutError {
  double mean = 0;
  double bounded = 0;         // sum of errors, each bounded
  std::vector<double> bytes;  // size of each point; `logs`: logarithm of its error
  std::vector<double> logs;
};

// Returns leave-one-out errors of each candidate by name. Empty for fewer than three points.
std::map<std::string, LeftOutError> left_out_errors(const Candidates& full, const Points& points) {
  // At a jump no candidate can predict the left-out size: such an error must not decide.
  constexpr double kMiss = 0.25;
  std::map<std::string, LeftOutError> errors;
  if (points.size() < 3) return errors;
  const std::size_t stride = (points.size() + kMaxOmitted - 1) / kMaxOmitted;
  double count = 0;
  for (std::size_t i = 0; i < points.size(); i += stride, ++count) {
    Points rest = points;
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    const Candidates without = candidates(rest);
    for (const auto& [name, model] : full) {
      const auto found = without.find(name);
      const double error =
          found == without.end() ? 1 : std::abs(relative_error(found->second, points[i]));
      LeftOutError& own = errors[name];
      own.mean += error;
      own.bounded += std::min(error, kMiss);
      own.bytes.push_back(bytes_of(points[i]));
      own.logs.push_back(found == without.end()
                             ? 1
                             : std::abs(std::log1p(relative_error(found->second, points[i]))));
    }
  }
  for (auto& [name, error] : errors) error.mean /= count;
  return errors;
}

// Returns the standard deviation around each size. Errors of sizes within some two octaves count,
// and the table's usual one once. It is computed from their mean by the ratio of a normal
// distribution, so that a single cliff does not widen all intervals.
std::vector<cost::SizeSpread> spreads_of(const LeftOutError& left_out, double noise) {
  constexpr double kOctaves = 2;
  constexpr double kMax = 0.5;
  constexpr std::size_t kListed = 16;
  const double normal = std::sqrt(std::numbers::pi / 2);
  const std::size_t count = left_out.bytes.size();
  double usual = 0;
  for (const double miss : left_out.logs)
    usual += std::min(miss, kMax) / static_cast<double>(count);
  std::vector<cost::SizeSpread> spreads;
  const std::size_t listed = std::min(count, kListed);
  for (std::size_t k = 0; k < listed; ++k) {
    const std::size_t i = listed > 1 ? k * (count - 1) / (listed - 1) : 0;
    double sum = usual;
    double weights = 1;
    for (std::size_t j = 0; j < count; ++j) {
      const double away = std::log2(left_out.bytes[j] / left_out.bytes[i]) / kOctaves;
      const double weight = std::exp(-away * away / 2);
      sum += weight * std::min(left_out.logs[j], kMax);
      weights += weight;
    }
    spreads.push_back({left_out.bytes[i], std::hypot(normal * sum / weights, noise)});
  }
  return spreads;
}

// Returns the exponent of the time's growth with the payload over the octave from `bytes` on.
double exponent_from(const cost::SizeCostModel& model, double bytes) {
  return std::clamp(std::log2(cost::size_time(model, 2 * bytes) / cost::size_time(model, bytes)),
                    0.0, 1.0);
}

// Widens the spreads beyond the table's sizes, for which it leaves the growth of the time open.
// Below, the exponent is between 0 (a latency) and that of the smallest sizes; above, between that
// of the largest ones and 1 (a bandwidth). The cost model takes one end, so its error per octave is
// that range / sqrt(3). Tables with both regimes, such as nccl-tests' default range, leave no
// range; a job's few buckets do.
void widen_beyond(SizeFit& fit) {
  constexpr double kReckoned = 0.1;  // per octave, already in every cost (spread_of)
  constexpr double kOctaves = 10;
  const double unit = std::log(2.0) / std::sqrt(3.0);
  const double first = bytes_of(fit.points.front());
  const double last = bytes_of(fit.points.back());
  const double below = unit * exponent_from(fit.cost_model, first / 2);
  const double above = unit * (1 - exponent_from(fit.cost_model, last));
  if (std::max(below, above) <= kReckoned) return;
  if (fit.spreads.empty()) {
    fit.spreads.push_back({first, cost::kUnknownSpread});
    if (last > first) fit.spreads.push_back({last, cost::kUnknownSpread});
  }
  if (above > kReckoned) {
    const double spread = std::hypot(fit.spreads.back().spread, above * kOctaves);
    fit.spreads.push_back({last * std::exp2(kOctaves), spread});
  }
  if (below > kReckoned) {
    const double spread = std::hypot(fit.spreads.front().spread, below * kOctaves);
    fit.spreads.insert(fit.spreads.begin(), {first / std::exp2(kOctaves), spread});
  }
}

// Removes candidates with an error of 4 % or more on half of their own rows, even if they predict
// left-out sizes best. If none remains, all candidates are admitted.
Candidates describing(const Candidates& full, const Points& points) {
  constexpr double kDescribes = 0.04;
  Candidates admitted = full;
  std::erase_if(admitted, [&](const auto& candidate) {
    return median_error(candidate.second, points) >= kDescribes;
  });
  return admitted.empty() ? full : admitted;
}

}  // namespace

std::vector<std::size_t> spread_points(const Points& points, std::size_t most) {
  const bool all = points.size() <= most;
  const double first = all ? 0 : std::log(bytes_of(points.front()));
  const double range = all ? 1 : std::log(bytes_of(points.back())) - first;
  std::vector<std::size_t> places;
  double bin = -1;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double at = (std::log(bytes_of(points[i])) - first) / range * static_cast<double>(most);
    if (!all && std::floor(at) == bin) continue;
    bin = std::floor(at);
    places.push_back(i);
  }
  return places;
}

SizeFit fit_sizes(SizeFit fit) {
  const Points& points = fit.points;
  assert(!points.empty() && "a fit needs a point");
  const Candidates full = candidates(points);
  const auto left_out = left_out_errors(full, points);
  const Candidates admitted = left_out.empty() ? full : describing(full, points);
  double least = std::numeric_limits<double>::infinity();
  if (!left_out.empty()) {
    for (const auto& [name, model] : admitted) least = std::min(least, left_out.at(name).bounded);
  }

  // Take the fewest parameters among those within a fiftieth of the best.
  constexpr double kAlike = 1.02;
  const cost::SizeCostModel* chosen = nullptr;
  for (const auto& [name, model] : admitted) {
    if (!left_out.empty() && left_out.at(name).bounded > kAlike * least) continue;
    if (chosen != nullptr && chosen->lines.size() <= model.lines.size()) continue;
    chosen = &model;
    fit.left_out = left_out.empty() ? -1 : left_out.at(name).mean;
    if (!left_out.empty()) fit.spreads = spreads_of(left_out.at(name), fit.noise);
  }
  assert(chosen != nullptr && "one of them is the best");
  fit.cost_model = *chosen;
  widen_beyond(fit);
  fit.in_sample = 0;
  for (const auto& point : points) fit.in_sample += std::abs(relative_error(fit.cost_model, point));
  fit.in_sample /= static_cast<double>(points.size());
  return fit;
}

}  // namespace syncline::calibrate
