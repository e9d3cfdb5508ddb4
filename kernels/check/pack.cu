// Pack: every type, size and offset, long lists, bad values, and the same bits in every run.
// Division and the timer.
#include <chrono>
#include <memory>

#include "kernels/check/check.h"
#include "kernels/pack.h"
#include "kernels/timer.h"

namespace syncline::kernels {
namespace {

template <typename From, typename To>
void check_list(Checks& checks, const std::string& name, const std::vector<std::size_t>& sizes,
                int from_offset, int to_offset, float bad = 0) {
  PackOptions options;
  options.from = kElementType<From>;
  options.to = kElementType<To>;
  options.scale = 0.375f;
  options.max_norm = 1;
  std::vector<std::unique_ptr<DeviceArray<From>>> sources;
  std::vector<To> expected;
  long double exact = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto values = random_elements<From>(sizes[i], static_cast<unsigned>(i));
    if (bad != 0 && !values.empty()) values[values.size() / 2] = from_float<From>(bad);
    sources.push_back(std::make_unique<DeviceArray<From>>(values, from_offset));
    for (const From value : values) {
      expected.push_back(from_float<To>(to_float(value) * options.scale));
      const double written = to_float(expected.back());
      exact += written * written;
    }
  }
  const auto sum = static_cast<double>(exact);
  DeviceArray<To> bucket(expected.size(), to_offset);
  std::vector<PackedTensor> tensors;
  std::size_t at = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    tensors.push_back(
        {sources[i]->data(), bucket.data() + at, static_cast<std::int64_t>(sizes[i])});
    at += sizes[i];
  }
  DeviceArray<double> partials(static_cast<std::size_t>(pack_partials(tensors, options)));
  DeviceArray<GradientMeasure> measure(std::vector<GradientMeasure>(1));
  options.measure = measure.data();
  options.partials = partials.data();
  require(pack(tensors, options, nullptr));
  wait_for_gpu();
  const auto wrong = different(bucket.get(), expected);
  bool intact = bucket.intact() && partials.intact() && measure.intact();
  for (const auto& source : sources) intact = intact && source->intact();
  const auto got = measure.get()[0];
  const bool finite = std::isfinite(sum);
  const double clip = std::min(1.0, 1 / (std::sqrt(sum) + 1e-6));
  const bool measured = finite ? std::fabs(got.sum_of_squares - sum) <= 1e-12 * sum &&
                                     std::fabs(got.clip_coefficient - clip) <= 1e-6 &&
                                     got.non_finite == 0
                               : got.non_finite == 1;
  checks.line("pack " + name + " " + name_of(options.from) + " -> " + name_of(options.to),
              wrong == 0 && intact && measured && got.ticket == 0,
              std::to_string(wrong) + " elements differ" + (intact ? "" : ", a canary died") +
                  (measured ? "" : ", wrong measure"));
}

template <typename From, typename To>
void check_types(Checks& checks) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{4095},
                                 std::size_t{4096}, std::size_t{4097}, checks.size(kBusy, 20011)}) {
    for (const auto& [from, to] : {std::pair{0, 0}, {1, 1}, {0, 1}, {3, 2}}) {
      check_list<From, To>(checks,
                           std::to_string(size) + " elements at offsets " + std::to_string(from) +
                               " and " + std::to_string(to),
                           {size}, from, to);
    }
  }
  check_list<From, To>(checks, "a NaN", {5000, 70}, 0, 0, std::nanf(""));
  check_list<From, To>(checks, "an infinity", {5000, 70}, 1, 0, INFINITY);
}

// Measuring alone writes nothing; the parts of a bucket go back to where they came from.
void check_back(Checks& checks) {
  const auto values = random_elements<float>(10007, 5);
  DeviceArray<float> bucket(values, 1);
  DeviceArray<float> first(5000), second(5007, 3);
  require(pack(std::vector<PackedTensor>{{bucket.data(), first.data(), 5000},
                                         {bucket.data() + 5000, second.data(), 5007}},
               {}, nullptr));
  PackOptions options;
  const std::vector<PackedTensor> all{{bucket.data(), nullptr, 10007}};
  DeviceArray<double> partials(static_cast<std::size_t>(pack_partials(all, options)));
  DeviceArray<GradientMeasure> measure(std::vector<GradientMeasure>(1));
  options.measure = measure.data();
  options.partials = partials.data();
  require(pack(all, options, nullptr));
  wait_for_gpu();
  auto joined = first.get();
  const auto rest = second.get();
  joined.insert(joined.end(), rest.begin(), rest.end());
  double sum = 0;
  for (const double value : values) sum += value * value;
  const bool measured = std::fabs(measure.get()[0].sum_of_squares - sum) <= 1e-12 * sum;
  checks.line("unpack, and measuring alone", different(joined, values) == 0 &&
                                                 different(bucket.get(), values) == 0 && measured &&
                                                 first.intact() && second.intact());
  require(pack({}, options, nullptr));
  wait_for_gpu();
  checks.line("the empty list has norm 0", measure.get()[0].norm == 0);
}

// The same list 20 times.
void check_determinism(Checks& checks) {
  const auto values = random_elements<float>(checks.size(5'000'003, 200'003), 1);
  DeviceArray<float> from(values);
  DeviceArray<Bf16> to(values.size());
  const PackedTensor tensor{from.data(), to.data(), static_cast<std::int64_t>(values.size())};
  PackOptions options;
  options.to = ElementType::kBf16;
  DeviceArray<double> partials(static_cast<std::size_t>(pack_partials({&tensor, 1}, options)));
  DeviceArray<GradientMeasure> measure(std::vector<GradientMeasure>(1));
  options.measure = measure.data();
  options.partials = partials.data();
  double first = 0;
  bool same = true;
  for (int run = 0; run < 20; ++run) {
    require(pack({&tensor, 1}, options, nullptr));
    wait_for_gpu();
    const double sum = measure.get()[0].sum_of_squares;
    if (run == 0) first = sum;
    same = same && sum == first;
  }
  checks.line("pack 20 times gives the same bits", same);
}

void check_divide(Checks& checks, std::size_t size, float divisor, int offset) {
  const auto values = random_elements<float>(size, 7);
  DeviceArray<float> device(values, offset);
  require(divide(device.data(), static_cast<std::int64_t>(size), divisor, nullptr));
  wait_for_gpu();
  std::vector<float> expected = values;
  for (auto& value : expected) value /= divisor;
  const std::size_t wrong = different(device.get(), expected);
  checks.line("divide " + std::to_string(size) + " by " + std::to_string(divisor),
              wrong == 0 && device.intact(), std::to_string(wrong) + " differ");
}

// Spans take the time that they were asked to, and one that follows counts from the intended end of
// the last. How much longer is no error: other programs run.
void check_spans(Checks& checks, int spans, std::int64_t nanoseconds) {
  DeviceArray<TimerState> timer(std::vector<TimerState>(1, TimerState{0, 0}));
  require(timer_begin(timer.data(), false, nullptr));  // loads the kernels
  require(timer_end(timer.data(), 0, nullptr));
  wait_for_gpu();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < spans; ++i) {
    require(timer_begin(timer.data(), i > 0, nullptr));
    require(timer_end(timer.data(), nanoseconds, nullptr));
  }
  wait_for_gpu();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const double meant = spans * static_cast<double>(nanoseconds) / 1e9;
  checks.line(
      "timer: " + std::to_string(spans) + " spans of " + std::to_string(nanoseconds) + " ns",
      took.count() >= meant - 1e-5 && timer.intact(),
      std::to_string(took.count()) + " s for " + std::to_string(meant));
}

}  // namespace

void check_pack(Checks& checks) {
  check_types<float, float>(checks);
  check_types<float, Bf16>(checks);
  check_types<float, Fp16>(checks);
  check_types<Bf16, float>(checks);
  check_types<Bf16, Bf16>(checks);
  check_types<Bf16, Fp16>(checks);
  check_types<Fp16, float>(checks);
  check_types<Fp16, Bf16>(checks);
  check_types<Fp16, Fp16>(checks);
  for (const int count : {1, 700, 1001, 2300}) {
    std::vector<std::size_t> sizes;
    for (int i = 0; i < count; ++i) {
      sizes.push_back(static_cast<std::size_t>(i * 37) % checks.size(4111, 211));
    }
    check_list<float, Bf16>(checks, std::to_string(count) + " tensors", sizes, 0, 0);
    check_list<float, float>(checks, std::to_string(count) + " tensors", sizes, 3, 1);
  }
  check_list<float, float>(checks, "a long tensor", {checks.size(20'000'001, 400'001)}, 0, 0);
  check_back(checks);
  check_determinism(checks);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{255},
                                 std::size_t{4097}, checks.size(1000019, 100019)}) {
    for (const float divisor : {2.0f, 3.0f, 7.0f}) check_divide(checks, size, divisor, 1);
  }
  check_spans(checks, 1, 1000000);
  check_spans(checks, 200, 100000);
}

}  // namespace syncline::kernels
