#include "kernels/check/measure.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "kernels/batch_norm.h"
#include "kernels/check/check.h"
#include "kernels/dgc_step.h"
#include "kernels/gemm_epilogue.h"
#include "kernels/kernels.h"
#include "kernels/sparse_apply.h"

namespace syncline::kernels {

TimeRange range_of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  return {times[n / 4], times[n / 2], times[n - 1 - n / 4]};
}

namespace {

// ---- Kernels ------------------------------------------------------------------------------------

class Timing {
 public:
  Timing(bool large, Measurements& to) : large_(large), to_(to) {}

  std::int64_t elements(std::int64_t large) const { return large_ ? large : 20011; }

  // Times `run` in turns with the kernels that it replaces, so that both see the same GPU clock.
  void row(TimedCase timed, const std::function<void()>& run,
           const std::function<void()>& unfused = {}) {
    if (!timed.failed.empty()) return to_.cases.push_back(std::move(timed));
    std::vector<double> times, others;
    const int runs = large_ ? 25 : 5;
    for (int i = 0; i < runs; ++i) {
      const double once = seconds_of(run);
      const double other = unfused ? seconds_of(unfused) : 0;
      if (i < 2) continue;
      times.push_back(once);
      others.push_back(other);
    }
    timed.seconds = range_of(times);
    if (unfused) timed.unfused_seconds = range_of(others);
    to_.cases.push_back(std::move(timed));
  }

 private:
  bool large_;
  Measurements& to_;
};

std::string millions(std::int64_t n) { return std::to_string(n / 1'000'000) + " M"; }

// Returns values other than zero, quickly.
template <typename T>
std::vector<T> some(std::int64_t n, float scale = 1) {
  const auto few = random_elements<float>(4096, 1);
  std::vector<T> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = from_float<T>(scale * few[(i * 2654435761U) % few.size()]);
  }
  return values;
}

void time_packs(Timing& timing, std::int64_t n) {
  DeviceArray<float> from(some<float>(n)), to(static_cast<std::size_t>(n));
  for (const auto type : {ElementType::kFp32, ElementType::kBf16, ElementType::kFp16}) {
    const std::vector<PackedTensor> list{{from.data(), to.data(), n}};
    timing.row({"pack fp32 -> " + std::string(name_of(type)) + ", " + millions(n), "pack",
                static_cast<double>(n), 0, static_cast<double>(n) * (4 + element_bytes(type))},
               [&] { require(pack(list, ElementType::kFp32, type, nullptr)); });
  }
  timing.row(
      {"divide, " + millions(n), "divide", static_cast<double>(n), 0, 8.0 * static_cast<double>(n)},
      [&] { require(divide(from.data(), n, 1.0000001f, nullptr)); });
}

void time_blocks(Timing& timing, std::int64_t n) {
  const std::int64_t bytes =
      (n + kBlockElements - 1) / kBlockElements * block_bytes(BlockFormat::kFp8);
  DeviceArray<float> values(some<float>(n));
  DeviceArray<unsigned char> blocks(static_cast<std::size_t>(bytes));
  const double moved = 4.0 * static_cast<double>(n) + static_cast<double>(bytes);
  timing.row({"fp8 blocks, " + millions(n), "blocks", static_cast<double>(n), 0, moved}, [&] {
    require(blocks_encode(BlockFormat::kFp8, values.data(), n, blocks.data(), nullptr));
  });
  timing.row({"from fp8 blocks, " + millions(n), "blocks", static_cast<double>(n), 0, moved}, [&] {
    require(blocks_decode(BlockFormat::kFp8, blocks.data(), values.data(), n, nullptr));
  });
}

// Times one launch for the bucket against one for each of its tensors.
void time_updates(Timing& timing, std::int64_t n) {
  DeviceArray<float> weights(some<float>(n)), gradients(some<float>(n, 1e-3f));
  DeviceArray<float> first(std::vector<float>(static_cast<std::size_t>(n)));
  DeviceArray<float> second(std::vector<float>(static_cast<std::size_t>(n)));
  DeviceArray<UpdateState> state(std::vector<UpdateState>(1));
  const auto bucket = [&](std::int64_t at, std::int64_t count) {
    return FlatBucket{weights.data() + at, gradients.data() + at, first.data() + at,
                      second.data() + at, count};
  };
  const std::int64_t tensor = (n + 160) / 161;  // ResNet-50 has 161 tensors
  const auto row = [&](const char* name, double bytes, auto update) {
    timing.row(
        {std::string(name) + ", " + millions(n),
         "update",
         static_cast<double>(n),
         0,
         bytes * static_cast<double>(n),
         {},
         bytes * static_cast<double>(n)},
        [&] { update(bucket(0, n)); },
        [&] {
          for (std::int64_t at = 0; at < n; at += tensor) {
            update(bucket(at, std::min(tensor, n - at)));
          }
        });
  };
  row("momentum", 20, [&](const FlatBucket& all) {
    const SgdOptions options{.learning_rate = 1e-4, .momentum = 0.9};
    require(update_sgd(all, options, state.data(), nullptr));
  });
  row("Adam", 28,
      [&](const FlatBucket& all) { require(update_adam(all, {}, state.data(), nullptr)); });
}

void time_dgc(Timing& timing, std::int64_t n) {
  const std::int64_t kept = n / 1000;
  // Gradients are small compared with residuals, so that thresholds move as in training.
  DeviceArray<float> velocity(some<float>(n)), residual(some<float>(n)),
      gradient(some<float>(n, 1e-3f));
  DgcPlan plan;
  require(dgc_plan({{gradient.data(), velocity.data(), residual.data(), n, kept}}, &plan));
  DeviceArray<unsigned char> workspace(plan.workspace_bytes);
  require(dgc_prepare(&plan, workspace.data(), nullptr));
  DeviceArray<std::uint32_t> indices(static_cast<std::size_t>(plan.packed));
  DeviceArray<float> sent(static_cast<std::size_t>(plan.packed));
  DeviceArray<DgcReport> reports(1);
  DgcStep step;
  step.indices = indices.data();
  step.values = sent.data();
  step.reports = reports.data();
  for (int i = 0; i < 20; ++i) require(dgc_step(plan, step, nullptr));  // into a steady state
  const auto elements = static_cast<double>(n);
  TimedCase timed{"dgc_step, " + millions(n), "dgc_step", elements, static_cast<double>(kept),
                  20 * elements};
  timing.row(timed, [&] { require(dgc_step(plan, step, nullptr)); });
  timed.name = "dgc_step, no guess, " + millions(n);
  timed.bytes = 24 * elements;
  step.candidate_scale = 0;
  timing.row(timed, [&] { require(dgc_step(plan, step, nullptr)); });
}

void time_sparse(Timing& timing, std::int64_t n, int ranks) {
  const std::int64_t kept = n / 1000;
  DeviceArray<float> weights(some<float>(n));
  SparsePlan plan;
  require(sparse_plan({{weights.data(), n, kept}}, &plan));
  DeviceArray<unsigned char> workspace(plan.workspace_bytes);
  require(sparse_prepare(&plan, workspace.data(), nullptr));
  std::mt19937 random(1);
  std::vector<std::uint32_t> lists;
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::int64_t i = 0; i < kept; ++i) {
      lists.push_back(static_cast<std::uint32_t>(i * 1000 + random() % 1000));
    }
  }
  DeviceArray<std::uint32_t> indices(lists);
  DeviceArray<float> values(std::vector<float>(lists.size(), 0.5f));
  DeviceArray<std::uint32_t> rejected(1);
  const SparseApply apply{ranks, indices.data(), values.data(), kept, 0.01f, rejected.data()};
  timing.row(
      {"sparse_apply of " + std::to_string(ranks) + " ranks, " + millions(n), "sparse_apply",
       static_cast<double>(n), static_cast<double>(kept), 72.0 * static_cast<double>(lists.size())},
      [&] { require(sparse_apply(plan, apply, nullptr)); });
}

// Times batch normalisation fused with addition and relu, against separate kernels.
void time_batch_norm(Timing& timing, std::int64_t rows, std::int32_t channels) {
  const std::int64_t n = rows * channels;
  DeviceArray<Bf16> x(some<Bf16>(n)), residual(some<Bf16>(n)), dy(some<Bf16>(n));
  DeviceArray<Bf16> y(static_cast<std::size_t>(n)), dx(static_cast<std::size_t>(n));
  DeviceArray<Bf16> dresidual(static_cast<std::size_t>(n));
  const std::vector<float> ones(static_cast<std::size_t>(channels), 1.0f);
  DeviceArray<float> gamma(ones), beta(ones), mean(ones), inverse(ones), dgamma(ones), dbeta(ones);
  DeviceArray<float> workspace(static_cast<std::size_t>(batch_norm_workspace(rows, channels)));
  BatchNorm fused{
      ElementType::kBf16, rows,         channels,    true,        1e-5f,          x.data(),
      residual.data(),    gamma.data(), beta.data(), mean.data(), inverse.data(), workspace.data()};
  BatchNorm alone = fused;
  alone.relu = false;
  alone.residual = nullptr;
  const AddActivation sum{ElementType::kBf16, Activation::kRelu, y.data(), residual.data(), n};
  const auto elements = static_cast<double>(n);
  timing.row(
      {"batch norm + add + relu, " + millions(n),
       "layer",
       elements,
       0,
       8 * elements,
       {},
       12 * elements},
      [&] { require(batch_norm_forward(fused, y.data(), nullptr)); },
      [&] {
        require(batch_norm_forward(alone, y.data(), nullptr));
        require(add_activation(sum, y.data(), nullptr));
      });
  timing.row(
      {"its gradient, " + millions(n), "layer", elements, 0, 16 * elements, {}, 18 * elements},
      [&] {
        require(batch_norm_backward(
            fused, {dy.data(), dx.data(), dresidual.data(), dgamma.data(), dbeta.data()}, nullptr));
      },
      [&] {
        require(add_activation_gradient(sum, dy.data(), dresidual.data(), nullptr));
        require(batch_norm_backward(
            alone, {dresidual.data(), dx.data(), nullptr, dgamma.data(), dbeta.data()}, nullptr));
      });
}

// Times y = gelu(x w^T + b) in one product, against the product and an activation.
void time_product(Timing& timing, std::int64_t rows, std::int64_t inputs, std::int64_t outputs) {
  DeviceArray<Bf16> x(some<Bf16>(rows * inputs)), w(some<Bf16>(inputs * outputs, 0.01f));
  DeviceArray<Bf16> b(some<Bf16>(outputs)), y(static_cast<std::size_t>(rows * outputs));
  DeviceArray<unsigned char> memory(kGemmWorkspaceBytes);
  const GemmWorkspace workspace{memory.data(), kGemmWorkspaceBytes};
  const LinearForward arrays{x.data(), w.data(), b.data(), y.data(), nullptr};
  LinearShape fused{ElementType::kBf16, Activation::kGelu, rows, inputs, outputs};
  LinearShape alone = fused;
  alone.activation = Activation::kIdentity;
  const AddActivation gelu{ElementType::kBf16, Activation::kGelu, y.data(), nullptr,
                           rows * outputs};
  const double bytes = 2.0 * static_cast<double>(rows * inputs + inputs * outputs + rows * outputs);
  TimedCase timed{"product + bias + gelu, " + std::to_string(rows) + " x " +
                      std::to_string(inputs) + " -> " + std::to_string(outputs),
                  "product",
                  static_cast<double>(rows * outputs),
                  0,
                  bytes,
                  {},
                  bytes + 4.0 * static_cast<double>(rows * outputs)};
  timed.failed = linear_forward(fused, arrays, workspace, nullptr).text;
  timing.row(
      timed, [&] { require(linear_forward(fused, arrays, workspace, nullptr)); },
      [&] {
        require(linear_forward(alone, arrays, workspace, nullptr));
        require(add_activation(gelu, y.data(), nullptr));
      });
}

// ---- JSON ---------------------------------------------------------------------------------------

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.7g", value);
  return text;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= ' ') result += c;
  }
  return result + '"';
}

// Returns the highest rate of memory, at any mix, in bytes per second.
double best_rate(const Measurements& measured) {
  double rate = 0;
  for (const Ceiling& ceiling : measured.ceilings) {
    rate = std::max(rate, ceiling.bytes / ceiling.seconds);
  }
  return rate;
}

std::string row_of(const TimedCase& timed, double rate) {
  constexpr double kMicro = 1e6;
  if (!timed.failed.empty()) {
    return "{\"case\": " + quoted(timed.name) + ", \"failed\": " + quoted(timed.failed) + "}";
  }
  std::string row = "{\"case\": " + quoted(timed.name) + ", \"kind\": " + quoted(timed.kind) +
                    ", \"elements\": " + number(timed.elements) +
                    ", \"kept\": " + number(timed.kept) +
                    ", \"counted_bytes\": " + number(timed.bytes) +
                    ", \"us\": " + number(kMicro * timed.seconds.median) +
                    ", \"us_low\": " + number(kMicro * timed.seconds.low) +
                    ", \"us_high\": " + number(kMicro * timed.seconds.high) +
                    ", \"floor_us\": " + number(kMicro * timed.bytes / rate);
  if (timed.unfused_bytes > 0) {
    row += ", \"unfused_bytes\": " + number(timed.unfused_bytes) +
           ", \"unfused_us\": " + number(kMicro * timed.unfused_seconds.median) +
           ", \"predicted_ratio\": " + number(timed.unfused_bytes / timed.bytes) +
           ", \"ratio\": " + number(timed.unfused_seconds.median / timed.seconds.median);
  }
  return row + "}";
}

template <typename List, typename Text>
std::string joined(const List& list, Text text) {
  std::string all;
  for (const auto& each : list) all += (all.empty() ? "\n    " : ",\n    ") + text(each);
  return "[" + all + "]";
}

}  // namespace

Measurements measure_kernels(bool large) {
  Measurements measured;
  measure_memory(large, measured);
  measure_launches(measured);
  Timing timing(large, measured);
  for (const std::int64_t n : {std::int64_t{25'500'000}, std::int64_t{110'000'000}}) {
    const std::int64_t size = timing.elements(n);
    time_packs(timing, size);
    time_blocks(timing, size);
    time_updates(timing, size);
    time_dgc(timing, size);
    time_sparse(timing, size, 8);
  }
  time_batch_norm(timing, large ? 200'704 : 300, 64);
  time_batch_norm(timing, large ? 50'176 : 300, 512);
  time_product(timing, large ? 8192 : 64, large ? 768 : 64, large ? 3072 : 64);
  return measured;
}

std::string as_json(const Measurements& measured, const Checks& checks, const std::string& machine,
                    const std::string& date, const std::string& commit, bool rehearsal) {
  const double rate = best_rate(measured);
  return "{\"format\": \"syncline gpu-check 1\",\n  \"rehearsal\": " +
         std::string(rehearsal ? "true" : "false") +
         ",\n  \"machine\": {\"name\": " + quoted(machine) + ", \"date\": " + quoted(date) +
         ", \"git\": " + quoted(commit) +
         "},\n  \"launch\": {\"submit_us\": " + number(1e6 * measured.submit_seconds) +
         ", \"gap_us\": " + number(1e6 * measured.gap_seconds) + "},\n  \"ceilings\": " +
         joined(measured.ceilings,
                [](const Ceiling& ceiling) {
                  return "{\"mix\": \"R" + std::to_string(ceiling.reads) + "W" +
                         std::to_string(ceiling.writes) +
                         "\", \"gbytes_per_s\": " + number(1e-9 * ceiling.bytes / ceiling.seconds) +
                         "}";
                }) +
         ",\n  \"checks\": " +
         joined(checks.cases(),
                [](const CheckedCase& checked) {
                  return "{\"name\": " + quoted(checked.name) +
                         ", \"passed\": " + (checked.passed ? "true" : "false") +
                         ", \"detail\": " + quoted(checked.detail) + "}";
                }) +
         ",\n  \"timings\": " +
         joined(measured.cases, [&](const TimedCase& timed) { return row_of(timed, rate); }) +
         "}\n";
}

}  // namespace syncline::kernels
