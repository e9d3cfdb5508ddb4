// Pack on the GPU: every type, size and offset, long lists, bad values, and the same bits in every
// run while another stream is busy.

#include <memory>

#include "kernels/busy.h"
#include "kernels/check/check.cuh"
#include "kernels/pack.h"

namespace syncline::kernels {
namespace {

// Raw device memory has no to_float: a measure travels as bytes.
struct DeviceMeasure {
  GradientMeasure* memory = nullptr;

  DeviceMeasure() {
    require(cudaMalloc(&memory, sizeof(GradientMeasure)), "cudaMalloc");
    require(cudaMemset(memory, 0, sizeof(GradientMeasure)), "cudaMemset");
  }
  ~DeviceMeasure() { cudaFree(memory); }

  GradientMeasure get() {
    GradientMeasure measure;
    require(cudaMemcpy(&measure, memory, sizeof measure, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return measure;
  }
};

struct DevicePartials {
  double* memory = nullptr;

  explicit DevicePartials(std::int64_t count) {
    const auto bytes = static_cast<std::size_t>(count + 1) * sizeof(double);
    require(cudaMalloc(&memory, bytes), "cudaMalloc");
    require(cudaMemset(memory, 0xff, bytes), "cudaMemset");
  }
  ~DevicePartials() { cudaFree(memory); }
};

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
  double sum = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto values = random_elements<From>(sizes[i], static_cast<unsigned>(i));
    if (bad != 0 && !values.empty()) values[values.size() / 2] = from_float<From>(bad);
    sources.push_back(std::make_unique<DeviceArray<From>>(values, from_offset));
    for (const From value : values) {
      expected.push_back(from_float<To>(to_float(value) * options.scale));
      const double written = to_float(expected.back());
      sum += written * written;
    }
  }
  DeviceArray<To> bucket(expected.size(), to_offset);
  std::vector<PackedTensor> tensors;
  std::size_t at = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    tensors.push_back(
        {sources[i]->data(), bucket.data() + at, static_cast<std::int64_t>(sizes[i])});
    at += sizes[i];
  }
  DevicePartials partials(pack_partials(tensors, options));
  DeviceMeasure measure;
  options.measure = measure.memory;
  options.partials = partials.memory;
  require(pack(tensors, options, nullptr));
  wait_for_gpu();
  const auto wrong = different(bucket.get(), expected);
  bool intact = bucket.intact();
  for (const auto& source : sources) intact = intact && source->intact();
  const auto got = measure.get();
  const bool finite = std::isfinite(sum);
  const double clip = std::min(1.0, 1 / (std::sqrt(sum) + 1e-6));
  const bool measured = finite ? std::fabs(got.sum_of_squares - sum) <= 1e-12 * sum &&
                                     std::fabs(got.clip_coefficient - clip) <= 1e-6 &&
                                     got.non_finite == 0
                               : got.non_finite == 1;
  checks.line(name + " " + name_of(options.from) + " -> " + name_of(options.to),
              wrong == 0 && intact && measured && got.ticket == 0,
              std::to_string(wrong) + " elements differ" + (intact ? "" : ", a canary died") +
                  (measured ? "" : ", wrong measure"));
}

template <typename From, typename To>
void check_types(Checks& checks) {
  for (const std::size_t size : {0, 1, 3, 4095, 4096, 4097, 1000003}) {
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

// The same list 20 times, the second half next to a kernel that holds half of the machine.
void check_determinism(Checks& checks) {
  const auto values = random_elements<float>(20'000'003, 1);
  DeviceArray<float> from(values);
  DeviceArray<Bf16> to(values.size());
  const PackedTensor tensor{from.data(), to.data(), static_cast<std::int64_t>(values.size())};
  PackOptions options;
  options.to = ElementType::kBf16;
  DevicePartials partials(pack_partials({&tensor, 1}, options));
  DeviceMeasure measure;
  options.measure = measure.memory;
  options.partials = partials.memory;
  cudaStream_t other;
  require(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "cudaStreamCreate");
  double first = 0;
  bool same = true;
  for (int run = 0; run < 20; ++run) {
    if (run >= 10) require(occupy({60, 512, 1e-3, true}, other));
    require(pack({&tensor, 1}, options, nullptr));
    wait_for_gpu();
    const double sum = measure.get().sum_of_squares;
    if (run == 0) first = sum;
    same = same && sum == first;
  }
  cudaStreamDestroy(other);
  checks.line("20 runs, half of them next to a busy kernel, give the same bits", same);
}

}  // namespace
}  // namespace syncline::kernels

int main() {
  using namespace syncline::kernels;
  Checks checks("pack");
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
    for (int i = 0; i < count; ++i) sizes.push_back(static_cast<std::size_t>(i * 37 % 4111));
    check_list<float, Bf16>(checks, std::to_string(count) + " tensors", sizes, 0, 0);
    check_list<float, float>(checks, std::to_string(count) + " tensors", sizes, 3, 1);
  }
  check_list<float, float>(checks, "40 M elements", {40'000'001}, 0, 0);
  check_determinism(checks);
  return checks.result();
}
