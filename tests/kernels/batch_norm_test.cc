// Batch normalisation, block by block on the CPU, against the host twin.

#include "kernels/batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>

#include "kernels/batch_norm_tile.h"
#include "kernels/reference/batch_norm.h"
#include "tests/kernels/guarded.h"

namespace syncline::kernels {
namespace {

template <typename T>
constexpr ElementType kTypeOf = std::is_same_v<T, float>  ? ElementType::kFp32
                                : std::is_same_v<T, Bf16> ? ElementType::kBf16
                                                          : ElementType::kFp16;

// Both passes that sum: each thread its rows, then pairwise along the columns, then the end.
template <int kWide, typename Rows, typename Join, typename End, typename Write>
void emulate_sums(const BatchNorm& norm, Rows rows, Join join, End end, Write write) {
  const auto grid = batch_norm_grid(norm.rows, norm.channels, kWide);
  auto block = std::make_unique<PairBlock<kWide>>();
  for (std::int64_t row_tile = 0; row_tile < grid.row_tiles; ++row_tile) {
    for (int channel_tile = 0; channel_tile < grid.channel_tiles; ++channel_tile) {
      const auto column = [&](int thread) {
        return column_of<kWide>(norm, channel_tile, row_tile, grid.rows_per_tile, thread);
      };
      for (int thread = 0; thread < kBlockThreads; ++thread) rows(column(thread), thread, *block);
      for (int stride = ColumnThread<kWide>::kRows / 2; stride > 0; stride /= 2) {
        for (int thread = 0; thread < stride * kLanes<kWide>; ++thread) {
          join(*block, thread, stride);
        }
      }
      for (int thread = 0; thread < kLanes<kWide>; ++thread) {
        write_pairs(norm, column(thread).channel, row_tile, thread, *block);
      }
    }
  }
  for (int channel = 0; channel < norm.channels; ++channel) {
    EndPair parts[kEndParts];
    for (int part = 0; part < kEndParts; ++part) parts[part] = end(grid, channel, part);
    for (int stride = kEndParts / 2; stride > 0; stride /= 2) {
      for (int part = 0; part < stride; ++part) {
        parts[part].first += parts[part + stride].first;
        parts[part].second += parts[part + stride].second;
      }
    }
    write(channel, parts[0]);
  }
}

template <int kWide, typename Write>
void emulate_pass(const BatchNorm& norm, Write write) {
  const auto grid = batch_norm_grid(norm.rows, norm.channels, kWide);
  for (std::int64_t tile = 0; tile * kWrittenRows < norm.rows; ++tile) {
    for (int channel_tile = 0; channel_tile < grid.channel_tiles; ++channel_tile) {
      for (int thread = 0; thread < kBlockThreads; ++thread) {
        write(column_of<kWide>(norm, channel_tile, tile, kWrittenRows, thread));
      }
    }
  }
}

template <typename T, int kWide>
void emulate_forward(const BatchNorm& norm, const RunningStatistics& running, T* y) {
  emulate_sums<kWide>(
      norm,
      [&](const auto& column, int thread, auto& block) {
        moments_of_thread<T>(norm, column, thread, block);
      },
      [](auto& block, int thread, int stride) { join_moments(block, thread, stride); },
      [&](const auto& grid, int channel, int part) {
        return end_of_moments(norm, grid, channel, part);
      },
      [&](int channel, const EndPair& sum) { write_statistics(norm, running, channel, sum); });
  emulate_pass<kWide>(norm, [&](const auto& column) { normalise_thread(norm, y, column); });
}

template <typename T, int kWide>
void emulate_backward(const BatchNorm& norm, const BatchNormGradients& gradients) {
  emulate_sums<kWide>(
      norm,
      [&](const auto& column, int thread, auto& block) {
        gradient_sums_of_thread(norm, static_cast<const T*>(gradients.dy), column, thread, block);
      },
      [](auto& block, int thread, int stride) { join_sums(block, thread, stride); },
      [&](const auto& grid, int channel, int part) {
        return end_of_sums(norm, grid, channel, part);
      },
      [&](int channel, const EndPair& sum) { write_gradients(norm, gradients, channel, sum); });
  emulate_pass<kWide>(norm,
                      [&](const auto& column) { gradient_of_thread<T>(norm, gradients, column); });
}

std::vector<double> wide_values(std::vector<float> values) {
  return {values.begin(), values.end()};
}

template <typename T>
double step_of() {
  return std::is_same_v<T, float> ? 0x1p-23 : std::is_same_v<T, Bf16> ? 0x1p-8 : 0x1p-10;
}

struct PlaneShape {
  std::size_t rows;
  std::size_t channels;
  int offset = 0;
  bool residual = false;
  bool relu = false;
  float mean = 0.5f;
};

template <typename T, int kWide>
struct PlaneSetting {
  std::size_t size;
  std::mt19937 random{3};
  Guarded<T> x, residual, y, dy, dx, dresidual;
  Guarded<float> gamma, beta, mean, inverse, dgamma, dbeta, running_mean, running_variance;
  std::vector<float> workspace;
  BatchNorm norm;
  BatchNormGradients gradients;
  RunningStatistics running;

  std::vector<float> random_values(std::size_t count, float centre) {
    std::normal_distribution<float> normal(centre, 1);
    std::vector<float> values(count);
    for (auto& value : values) value = normal(random);
    return values;
  }

  explicit PlaneSetting(const PlaneShape& shape)
      : size(shape.rows * shape.channels),
        x(size, shape.offset, random_values(size, shape.mean)),
        residual(size, shape.offset, random_values(size, 0)),
        y(size, shape.offset),
        dy(size, shape.offset, random_values(size, 0)),
        dx(size, shape.offset),
        dresidual(size, shape.offset),
        gamma(shape.channels, 0, random_values(shape.channels, 1)),
        beta(shape.channels, 0, random_values(shape.channels, 0)),
        mean(shape.channels),
        inverse(shape.channels),
        dgamma(shape.channels),
        dbeta(shape.channels),
        running_mean(shape.channels, 0, std::vector<float>(shape.channels, 2.0f)),
        running_variance(shape.channels, 0, std::vector<float>(shape.channels, 3.0f)) {
    norm.type = kTypeOf<T>;
    norm.rows = static_cast<std::int64_t>(shape.rows);
    norm.channels = static_cast<std::int32_t>(shape.channels);
    norm.relu = shape.relu;
    norm.x = x.data();
    norm.residual = shape.residual ? residual.data() : nullptr;
    norm.gamma = gamma.data();
    norm.beta = beta.data();
    norm.mean = mean.data();
    norm.inverse_deviation = inverse.data();
    workspace.assign(static_cast<std::size_t>(batch_norm_workspace(norm.rows, norm.channels)), NAN);
    norm.workspace = workspace.data();
    gradients = {dy.data(), dx.data(), shape.residual ? dresidual.data() : nullptr, dgamma.data(),
                 dbeta.data()};
    running = {running_mean.data(), running_variance.data(), 0.25f};
  }

  void check() {
    ASSERT_EQ(check_batch_norm(norm, running, y.data()).text, "");
    ASSERT_EQ(check_batch_norm_gradient(norm, gradients).text, "");
    NormedPlane plane;
    plane.channels = static_cast<std::size_t>(norm.channels);
    plane.x = wide_values(x.values());
    if (norm.residual != nullptr) plane.residual = wide_values(residual.values());
    plane.gamma = wide_values(gamma.values());
    plane.beta = wide_values(beta.values());
    plane.epsilon = static_cast<double>(norm.epsilon);
    plane.activation = norm.relu ? Nonlinearity::kRelu : Nonlinearity::kNone;
    const auto expected = batch_norm(plane);
    emulate_forward<T, kWide>(norm, running, y.data());
    const auto rows = static_cast<double>(norm.rows);
    for (std::size_t c = 0; c < plane.channels; ++c) {
      const double variance = expected.variance[c];
      const double deviation = std::sqrt(variance + plane.epsilon);
      const double far = std::fabs(expected.mean[c]) + deviation;
      ASSERT_NEAR(mean[c], expected.mean[c], 1e-6 * far) << c;
      ASSERT_NEAR(inverse[c] * deviation, 1, 2e-5) << c;
      ASSERT_NEAR(running_mean[c], 0.75 * 2 + 0.25 * expected.mean[c], 1e-6 * (2 + far));
      const double unbiased = variance * rows / std::max(1.0, rows - 1);
      ASSERT_NEAR(running_variance[c], 0.75 * 3 + 0.25 * unbiased, 1e-5 * (3 + unbiased));
    }
    // Going back the kernel has its own y's mask: where z is a hair from 0 the two may differ.
    const auto back = batch_norm_gradients(plane, wide_values(dy.values()));
    emulate_backward<T, kWide>(norm, gradients);
    NormedPlane open = plane;
    open.activation = Nonlinearity::kNone;
    const auto z = batch_norm(open).y;
    std::size_t near_zero = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t c = i % plane.channels;
      const double slack =
          (1 + std::fabs(plane.gamma[c])) * (1e-5 + 1e-6 * std::fabs(expected.mean[c]));
      ASSERT_NEAR(y[i], expected.y[i], step_of<T>() * std::fabs(expected.y[i]) + slack) << i;
      if (norm.relu && std::fabs(z[i]) < slack) {
        ++near_zero;
        continue;
      }
      const double scale = std::fabs(plane.gamma[c] * static_cast<double>(inverse[c])) + 1;
      ASSERT_NEAR(dx[i], back.dx[i], step_of<T>() * std::fabs(back.dx[i]) + 4e-5 * scale * 4) << i;
      if (norm.residual != nullptr) {
        ASSERT_NEAR(dresidual[i], back.dresidual[i], step_of<T>() * std::fabs(back.dresidual[i]));
      }
    }
    EXPECT_LE(near_zero, size / 1000 + 2);
    for (std::size_t c = 0; c < plane.channels; ++c) {
      ASSERT_NEAR(dbeta[c], back.dbeta[c], 2e-5 * std::sqrt(rows) + 1e-5) << c;
      ASSERT_NEAR(dgamma[c], back.dgamma[c], 1e-4 * std::sqrt(rows) + 1e-4) << c;
    }
    EXPECT_TRUE(x.intact() && residual.intact() && y.intact() && dy.intact() && dx.intact() &&
                dresidual.intact() && gamma.intact() && beta.intact() && mean.intact() &&
                inverse.intact() && dgamma.intact() && dbeta.intact());
  }
};

TEST(BatchNorm, EveryShapeWide) {
  for (const std::size_t rows : {2u, 31u, 33u, 127u, 128u, 129u, 500u}) {
    for (const std::size_t channels : {8u, 64u, 72u, 256u}) {
      for (const bool residual : {false, true}) {
        for (const bool relu : {false, true}) {
          SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(channels));
          PlaneSetting<Bf16, 8>({rows, channels, 0, residual, relu}).check();
          if (rows == 129) PlaneSetting<Fp16, 8>({rows, channels, 0, residual, relu}).check();
          if (rows == 129) PlaneSetting<float, 4>({rows, channels, 0, residual, relu}).check();
        }
      }
    }
  }
}

TEST(BatchNorm, OddShapesGoElementByElement) {
  for (const std::size_t rows : {2u, 9u, 130u}) {
    for (const std::size_t channels : {1u, 3u, 33u, 64u, 67u}) {
      for (const int offset : {0, 1, 3}) {
        PlaneSetting<float, 1>({rows, channels, offset, true, true}).check();
        PlaneSetting<Bf16, 1>({rows, channels, offset, false, true}).check();
      }
    }
  }
}

TEST(BatchNorm, OneRowHasVarianceZero) {
  PlaneSetting<float, 1> setting({1, 5});
  emulate_forward<float, 1>(setting.norm, setting.running, setting.y.data());
  for (std::size_t c = 0; c < 5; ++c) {
    EXPECT_EQ(setting.mean[c], setting.x[c]);
    EXPECT_EQ(setting.y[c], setting.beta[c]);
  }
}

// More rows than 512 tiles of 128: tiles grow.
TEST(BatchNorm, ManyRows) { PlaneSetting<float, 4>({70001, 4, 0, false, true}).check(); }

// A mean a thousand times the deviation: sums of squares would lose the variance to rounding.
TEST(BatchNorm, AMeanFarFromZeroDoesNoHarm) {
  PlaneSetting<float, 4> setting({5000, 8, 0, false, false, 1000.0f});
  emulate_forward<float, 4>(setting.norm, setting.running, setting.y.data());
  NormedPlane plane;
  plane.channels = 8;
  plane.x = wide_values(setting.x.values());
  plane.gamma.assign(8, 1);
  plane.beta.assign(8, 0);
  const auto expected = batch_norm(plane);
  for (std::size_t c = 0; c < 8; ++c) {
    const double inverse = 1 / std::sqrt(expected.variance[c] + 1e-5);
    EXPECT_NEAR(setting.inverse[c], inverse, 1e-5 * inverse);
  }
}

// Element by element or eight at a time: other sums, the same result to fp32's rounding.
TEST(BatchNorm, BothWidthsAgree) {
  PlaneSetting<Bf16, 8> wide({300, 64, 0, true, true});
  PlaneSetting<Bf16, 1> narrow({300, 64, 0, true, true});
  emulate_forward<Bf16, 8>(wide.norm, wide.running, wide.y.data());
  emulate_forward<Bf16, 1>(narrow.norm, narrow.running, narrow.y.data());
  for (std::size_t c = 0; c < 64; ++c) EXPECT_NEAR(wide.mean[c], narrow.mean[c], 1e-6);
  for (std::size_t i = 0; i < wide.size; ++i) {
    EXPECT_NEAR(wide.y[i], narrow.y[i], 0x1p-8 * std::fabs(wide.y[i]) + 1e-5);
  }
}

TEST(BatchNorm, WideOnlyWhereEveryRowIsAligned) {
  PlaneSetting<Bf16, 8> setting({4, 64});
  EXPECT_TRUE(goes_wide(setting.norm, {setting.y.data()}));
  EXPECT_FALSE(goes_wide(setting.norm, {setting.y.data() + 1}));
  setting.norm.channels = 60;
  EXPECT_FALSE(goes_wide(setting.norm, {setting.y.data()}));
}

TEST(BatchNorm, BadArgumentsAreNamed) {
  PlaneSetting<float, 4> good({4, 8});
  const auto has = [](const Status& status, const char* part) {
    EXPECT_NE(status.text.find(part), std::string::npos) << status.text;
  };
  const auto forward = [&](const BatchNorm& norm) {
    return check_batch_norm(norm, good.running, good.y.data());
  };
  BatchNorm bad = good.norm;
  bad.rows = 0;
  has(forward(bad), "0 rows");
  bad = good.norm;
  bad.x = nullptr;
  has(forward(bad), "x is a null");
  bad = good.norm;
  bad.workspace = nullptr;
  has(forward(bad), "workspace is a null");
  bad = good.norm;
  bad.epsilon = -1;
  has(forward(bad), "epsilon");
  bad = good.norm;
  bad.rows = 1ll << 40;
  bad.channels = 1 << 20;
  has(forward(bad), "more rows and channels");
  has(check_batch_norm(good.norm, {good.running_mean.data(), nullptr, 0.1f}, good.y.data()),
      "must be given together");
  has(check_batch_norm(good.norm, {nullptr, nullptr, 2}, good.y.data()), "momentum");
  auto gradients = good.gradients;
  gradients.dresidual = good.dresidual.data();
  has(check_batch_norm_gradient(good.norm, gradients), "residual and dresidual");
  gradients = good.gradients;
  gradients.dgamma = nullptr;
  has(check_batch_norm_gradient(good.norm, gradients), "dgamma is a null");
}

}  // namespace
}  // namespace syncline::kernels
