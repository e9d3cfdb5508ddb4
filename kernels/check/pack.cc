// Checks pack for every pair of types, size and offset, long lists, and values that are not finite.
// Checks division and the timer.
#include <chrono>
#include <memory>

#include "kernels/check/check.h"
#include "kernels/kernels.h"

namespace syncline::kernels {
namespace {

template <typename From, typename To>
void check_list(Checks& checks, const std::string& name, const std::vector<std::size_t>& sizes,
                int from_offset, int to_offset, float bad = 0) {
  std::vector<std::unique_ptr<DeviceArray<From>>> sources;
  std::vector<To> expected;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto values = random_elements<From>(sizes[i], static_cast<unsigned>(i));
    if (bad != 0 && !values.empty()) values[values.size() / 2] = from_float<From>(bad);
    sources.push_back(std::make_unique<DeviceArray<From>>(values, from_offset));
    for (const From value : values) expected.push_back(from_float<To>(to_float(value)));
  }
  DeviceArray<To> bucket(expected.size(), to_offset);
  std::vector<PackedTensor> tensors;
  std::size_t at = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    tensors.push_back(
        {sources[i]->data(), bucket.data() + at, static_cast<std::int64_t>(sizes[i])});
    at += sizes[i];
  }
  require(pack(tensors, kElementType<From>, kElementType<To>, nullptr));
  wait_for_gpu();
  const auto wrong = different(bucket.get(), expected);
  bool intact = bucket.intact();
  for (const auto& source : sources) intact = intact && source->intact();
  checks.line(
      "pack " + name + " " + name_of(kElementType<From>) + " -> " + name_of(kElementType<To>),
      wrong == 0 && intact,
      std::to_string(wrong) + " elements differ" + (intact ? "" : ", a canary died"));
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

// Checks that the parts of a bucket can be copied back.
void check_back(Checks& checks) {
  const auto values = random_elements<float>(10007, 5);
  DeviceArray<float> bucket(values, 1);
  DeviceArray<float> first(5000), second(5007, 3);
  require(pack(std::vector<PackedTensor>{{bucket.data(), first.data(), 5000},
                                         {bucket.data() + 5000, second.data(), 5007}},
               ElementType::kFp32, ElementType::kFp32, nullptr));
  wait_for_gpu();
  auto joined = first.get();
  const auto rest = second.get();
  joined.insert(joined.end(), rest.begin(), rest.end());
  checks.line("unpack", different(joined, values) == 0 && different(bucket.get(), values) == 0 &&
                            first.intact() && second.intact());
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

// Checks that spans take the requested time, and that one that follows counts from the intended end
// of the last. Longer times are no error: other programs run.
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
  check_types<Fp16, float>(checks);
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
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{255},
                                 std::size_t{4097}, checks.size(1000019, 100019)}) {
    for (const float divisor : {2.0f, 3.0f, 7.0f}) check_divide(checks, size, divisor, 1);
  }
  check_spans(checks, 1, 1000000);
  check_spans(checks, 200, 100000);
}

}  // namespace syncline::kernels
