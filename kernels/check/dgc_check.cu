// DGC's kernels on the GPU at hand against their host twins, to the bit. With --time also what a
// step takes at 25.5 M, 110 M and 340 M elements.

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/compress/momentum_correction.h"
#include "kernels/check/check.cuh"
#include "kernels/dgc_step.h"
#include "kernels/reference/dgc_step.h"
#include "kernels/reference/sampled_threshold.h"
#include "kernels/reference/sparse_apply.h"
#include "kernels/sampled_threshold.h"
#include "kernels/sparse_apply.h"

namespace syncline::kernels {
namespace {

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

using Values = std::vector<float>;

struct CheckedTensor {
  Values gradient, velocity, residual, weight;
  std::int64_t kept = 0;
  int offset = 0;  // of all arrays; the gradient's is one more where it is odd
};

Values normal(std::size_t n, std::mt19937& random, float deviation = 1) {
  std::normal_distribution<float> draw(0, deviation);
  Values values(n);
  for (auto& value : values) value = draw(random);
  return values;
}

CheckedTensor random_tensor(std::size_t n, std::int64_t kept, std::uint32_t seed, int offset = 0) {
  std::mt19937 random(seed);
  return {normal(n, random), normal(n, random), normal(n, random), normal(n, random), kept, offset};
}

// Gradients as the kernels get them, and as the host sees the same numbers.
class Gradients {
 public:
  Gradients(ElementType type, std::size_t n, int offset)
      : type_(type),
        wide_(type == ElementType::kFp32 ? n : 0, offset),
        narrow_(type == ElementType::kFp32 ? 0 : n, offset) {}

  Values set(Values values) {
    if (type_ == ElementType::kFp32) {
      wide_.put(values);
      return values;
    }
    std::vector<std::uint16_t> halves;
    for (float& value : values) {
      if (type_ == ElementType::kBf16) {
        const Bf16 half = from_float<Bf16>(value);
        halves.push_back(half.bits);
        value = to_float(half);
      } else {
        const Fp16 half = from_float<Fp16>(value);
        halves.push_back(half.bits);
        value = to_float(half);
      }
    }
    narrow_.put(halves);
    return values;
  }

  const void* data() {
    return type_ == ElementType::kFp32 ? static_cast<const void*>(wide_.data())
                                       : static_cast<const void*>(narrow_.data());
  }

 private:
  ElementType type_;
  DeviceArray<float> wide_;
  DeviceArray<std::uint16_t> narrow_;
};

const char* path_name(DgcPath path) {
  constexpr const char* kNames[] = {"?",     "speculative", "exact",   "recount",
                                    "whole", "nothing",     "skipped", "sampled"};
  const auto number = static_cast<std::uint32_t>(path);
  return number < 8 ? kNames[number] : "?";
}

// Tensors on both sides, stepped together.
class DgcCase {
 public:
  DgcCase(Checks& checks, std::vector<CheckedTensor> tensors, ElementType type)
      : checks_(checks), hosts_(std::move(tensors)) {
    std::vector<DgcTensor> list;
    for (auto& host : hosts_) {
      const std::size_t n = host.gradient.size();
      gradients_.emplace_back(type, n, host.offset % 2 ? host.offset + 1 : host.offset);
      velocities_.emplace_back(host.velocity, host.offset);
      residuals_.emplace_back(host.residual, host.offset);
      weights_.emplace_back(host.weight, host.offset);
      host.gradient = gradients_.back().set(host.gradient);
      list.push_back({gradients_.back().data(), velocities_.back().data(), residuals_.back().data(),
                      weights_.back().data(), static_cast<std::int64_t>(n), host.kept});
    }
    require(dgc_plan(list, type, &plan_));
    workspace_.emplace_back(plan_.workspace_bytes);
    require(dgc_prepare(&plan_, workspace_[0].data(), plan_.workspace_bytes, nullptr));
  }

  void next_gradients(std::uint32_t seed, float deviation) {
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      hosts_[i].gradient = gradients_[i].set(normal(hosts_[i].gradient.size(), random, deviation));
    }
  }

  void step(const std::string& name, DgcStep step, bool sampled = false, bool inspect = false) {
    const auto packed = static_cast<std::size_t>(plan_.packed);
    DeviceArray<std::uint32_t> indices(packed);
    DeviceArray<float> values(packed, 1);
    DeviceArray<DgcReport> reports(hosts_.size());
    step.indices = indices.data();
    step.values = values.data();
    step.reports = reports.data();
    if (inspect) {
      require(dgc_inspect(plan_, {}, nullptr));
      step.skip = dgc_skip_flag(plan_);
    }
    if (sampled) {
      SampledPlan room;
      require(sampled_plan(plan_, &room));
      DeviceArray<unsigned char> memory(room.workspace_bytes);
      require(sampled_step(plan_, room, memory.data(), room.workspace_bytes, step, nullptr));
      require(cudaDeviceSynchronize(), "sampled_step");
    } else {
      require(dgc_step(plan_, step, nullptr));
      require(cudaDeviceSynchronize(), "dgc_step");
    }
    const auto got_indices = indices.get();
    const auto got_values = values.get();
    const auto got_reports = reports.get();
    std::string difference;
    if (!indices.intact() || !values.intact()) difference = "a message's guards fell";
    for (std::size_t i = 0; i < hosts_.size() && difference.empty(); ++i) {
      difference = compare(i, step, sampled, got_indices, got_values, got_reports[i]);
    }
    const std::string note = hosts_.size() == 1 ? path_name(got_reports[0].path) : "";
    checks_.line(name, difference.empty(), difference.empty() ? note : difference);
  }

 private:
  std::string compare(std::size_t i, const DgcStep& step, bool sampled,
                      const std::vector<std::uint32_t>& indices, const Values& values,
                      const DgcReport& report) {
    CheckedTensor& host = hosts_[i];
    const DgcRow& row = plan_.rows[i];
    const bool broken = std::isnan(dgc_clip_coefficient(host.gradient, 0));
    const bool skipped = report.path == DgcPath::kSkipped;
    SparseMessage message;
    if (!skipped) {
      const compress::DgcUpdate update{step.momentum, step.scale, step.weight_decay, step.nesterov};
      compress::accumulate(host.gradient, host.weight, update, host.velocity, host.residual);
      message = sampled ? take_above(sampled_threshold(host.residual, host.kept), host.kept,
                                     host.velocity, host.residual)
                        : take_out(largest_magnitudes(host.residual, host.kept), host.velocity,
                                   host.residual);
    }
    message.indices.resize(row.kept, kPadIndex);
    message.values.resize(row.kept, sampled ? -1.0f : 0.0f);
    const auto at = static_cast<std::ptrdiff_t>(row.packed_at);
    const std::vector<std::uint32_t> got_indices(indices.begin() + at,
                                                 indices.begin() + at + row.kept);
    const Values got_values(values.begin() + at, values.begin() + at + row.kept);
    const std::string where = "tensor " + std::to_string(i) + " (" + path_name(report.path) + "): ";
    if (step.skip && broken && !skipped) return where + "was not skipped";
    if (!same_bits(velocities_[i].get(), host.velocity)) return where + "velocity";
    if (!same_bits(residuals_[i].get(), host.residual)) return where + "residual";
    if (!same_bits(got_indices, message.indices)) return where + "indices";
    if (!same_bits(got_values, message.values)) return where + "values";
    if (!velocities_[i].intact() || !residuals_[i].intact()) return where + "guards";
    return "";
  }

  Checks& checks_;
  std::vector<CheckedTensor> hosts_;
  std::deque<Gradients> gradients_;
  std::deque<DeviceArray<float>> velocities_, residuals_, weights_;
  std::deque<DeviceArray<unsigned char>> workspace_;
  DgcPlan plan_;
};

// ---- Cases --------------------------------------------------------------------------------------

void check_types_and_forms(Checks& checks) {
  constexpr const char* kTypes[] = {"fp32", "bf16", "fp16"};
  for (int type = 0; type < 3; ++type) {
    for (const bool nesterov : {false, true}) {
      for (const float decay : {0.0f, 1e-3f}) {
        std::vector<CheckedTensor> tensors;
        std::uint32_t seed = 1;
        for (const std::size_t n : {0, 1, 3, 4, 4095, 4096, 4097, 100003, 1000003}) {
          for (int offset = 0; offset < 4; ++offset) {
            const auto elements = static_cast<std::int64_t>(n);
            tensors.push_back(random_tensor(n, elements / 1000 + offset, ++seed, offset));
          }
        }
        DgcCase one(checks, std::move(tensors), static_cast<ElementType>(type));
        DgcStep step;
        step.nesterov = nesterov;
        step.weight_decay = decay;
        step.scale = 0.5f;
        for (int i = 0; i < 3; ++i) {
          one.step(std::string(kTypes[type]) + (nesterov ? ", Nesterov" : "") +
                       (decay != 0 ? ", decay" : "") + ", step " + std::to_string(i),
                   step);
          one.next_gradients(++seed, 0.1f);
        }
      }
    }
  }
}

void check_paths(Checks& checks) {
  for (const float scale : {0.0f, 0.95f, 1.9f, 100.0f, 1e-3f, 1e-30f}) {
    DgcCase one(checks, {random_tensor(3000017, 3000, 7)}, ElementType::kFp32);
    DgcStep step;
    step.momentum = 0.5f;
    one.step("first, then scale " + std::to_string(scale), step);
    step.candidate_scale = scale;
    for (std::uint32_t i = 0; i < 3; ++i) {
      one.next_gradients(50 + i, 0.05f);
      one.step("candidates from " + std::to_string(scale) + " x threshold", step);
    }
  }
}

void check_kinds(Checks& checks) {
  const std::size_t n = 300007;
  struct Kind {
    const char* name;
    std::function<float(std::size_t, std::mt19937&)> value;
  };
  const std::vector<Kind> kinds = {
      {"all equal", [](std::size_t, std::mt19937&) { return 0.5f; }},
      {"all zero", [](std::size_t, std::mt19937&) { return 0.0f; }},
      {"few levels",
       [](std::size_t, std::mt19937& random) { return static_cast<float>(random() % 5) - 2; }},
      {"ties where tiles meet",
       [](std::size_t i, std::mt19937&) { return (i + 2) % 2048 < 4 ? -1.0f : 0.25f; }},
      {"ramp", [](std::size_t i, std::mt19937&) { return static_cast<float>(i); }},
      {"subnormal",
       [](std::size_t, std::mt19937& random) {
         return float_of(static_cast<std::uint32_t>(random() % 5000));
       }},
      {"hot row",
       [](std::size_t i, std::mt19937& random) {
         return static_cast<float>(random() % 1000) * (i / 1024 == 100 ? 1.0f : 1e-3f);
       }},
      {"not a number here and there",
       [](std::size_t i, std::mt19937& random) {
         return i % 999 == 7 ? std::numeric_limits<float>::quiet_NaN()
                             : static_cast<float>(random() % 1000);
       }},
  };
  for (const Kind& kind : kinds) {
    std::mt19937 random(3);
    Values residual(n);
    for (std::size_t i = 0; i < n; ++i) residual[i] = kind.value(i, random);
    for (const std::int64_t kept : {0, 1, 300, 9000, 150000, 300006, 300007, 400000}) {
      DgcCase one(checks, {{Values(n), Values(n), residual, Values(n), kept, 1}},
                  ElementType::kFp32);
      for (int i = 0; i < 2; ++i) {
        one.step(std::string(kind.name) + ", kept " + std::to_string(kept), {});
      }
    }
  }
}

void check_not_finite(Checks& checks) {
  CheckedTensor tensor = random_tensor(50000, 50, 1);
  tensor.gradient[777] = std::numeric_limits<float>::quiet_NaN();
  DgcCase skipped(checks, {tensor, random_tensor(5000, 5, 2)}, ElementType::kFp32);
  skipped.step("skips what is not finite", {}, false, true);
  DgcCase held(checks, {tensor}, ElementType::kFp32);
  held.step("holds what is not finite", {});
}

void check_many_tensors(Checks& checks) {
  std::vector<CheckedTensor> tensors;
  for (std::uint32_t i = 0; i < 700; ++i) {
    tensors.push_back(
        random_tensor(i % 11 == 0 ? 0 : i * i % 30011, i % 50, i, static_cast<int>(i % 4)));
  }
  DgcCase one(checks, std::move(tensors), ElementType::kFp32);
  for (int i = 0; i < 3; ++i) one.step("700 tensors", {});
}

void check_repetition(Checks& checks) {
  for (int i = 0; i < 20; ++i) {
    DgcCase one(checks, {random_tensor(2000003, 2000, 5)}, ElementType::kFp32);
    one.step("again", {});
    one.step("again", {});
  }
}

void check_sampled(Checks& checks) {
  std::vector<CheckedTensor> tensors;
  for (const std::int64_t kept : {2, 16, 262, 5000}) {
    tensors.push_back(random_tensor(16384, kept, 1));
    tensors.push_back(random_tensor(262144, kept, 2));
    tensors.push_back(random_tensor(1000003, kept, 3));
  }
  DgcCase one(checks, std::move(tensors), ElementType::kFp32);
  for (int i = 0; i < 3; ++i) one.step("sampled threshold", {}, true);
}

void check_sparse(Checks& checks, int ranks, bool rising, bool bad) {
  std::mt19937 random(static_cast<std::uint32_t>(ranks));
  const std::vector<std::int64_t> sizes{1, 100, 70001, 1000003};
  std::deque<DeviceArray<float>> weights;
  std::vector<Values> host_weights;
  std::vector<SparseTensor> tensors;
  for (const std::int64_t n : sizes) {
    host_weights.push_back(normal(static_cast<std::size_t>(n), random));
    weights.emplace_back(host_weights.back());
    tensors.push_back({weights.back().data(), n, n == 1 ? 1 : n / 50});
  }
  SparsePlan plan;
  require(sparse_plan(tensors, &plan));
  DeviceArray<unsigned char> workspace(plan.workspace_bytes);
  require(sparse_prepare(&plan, workspace.data(), plan.workspace_bytes, nullptr));
  std::vector<std::uint32_t> indices;
  Values values;
  std::vector<std::vector<SparseMessage>> messages(sizes.size());
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto places = static_cast<std::size_t>(tensors[i].places);
      const auto stride = static_cast<std::uint32_t>(sizes[i]) / static_cast<std::uint32_t>(places);
      SparseMessage message;
      for (std::uint32_t j = 0; j < places; ++j) {
        message.indices.push_back(j * stride + static_cast<std::uint32_t>(random()) % stride);
        message.values.push_back(normal(1, random)[0]);
      }
      if (rank % 3 == 2) {
        message.indices.back() = kPadIndex;
        message.values.back() = 0;
      }
      if (!rising) std::shuffle(message.indices.begin(), message.indices.end(), random);
      if (bad && rank == ranks - 1 && i == 2) message.indices[77] = 70001;
      indices.insert(indices.end(), message.indices.begin(), message.indices.end());
      values.insert(values.end(), message.values.begin(), message.values.end());
      messages[i].push_back(std::move(message));
    }
  }
  DeviceArray<std::uint32_t> sent_indices(indices);
  DeviceArray<float> sent_values(values);
  DeviceArray<std::uint32_t> rejected(1);
  const SparseApply apply{
      ranks, sent_indices.data(), sent_values.data(), plan.packed, 0.25f, rejected.data(), rising};
  require(sparse_apply(plan, apply, nullptr));
  require(cudaDeviceSynchronize(), "sparse_apply");
  std::string difference;
  if ((rejected.get()[0] != 0) != bad) difference = "rejected";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!bad) apply_messages(messages[i], 0.25f, host_weights[i], rising);
    if (!same_bits(weights[i].get(), host_weights[i])) difference = "weights";
    if (!weights[i].intact()) difference = "guards";
  }
  checks.line("sparse apply, " + std::to_string(ranks) + " ranks" +
                  (rising ? "" : ", in no order") + (bad ? ", a bad index" : ""),
              difference.empty(), difference);
}

// ---- Times --------------------------------------------------------------------------------------

template <typename F>
double median_microseconds(F&& launch) {
  cudaEvent_t begin, end;
  require(cudaEventCreate(&begin), "cudaEventCreate");
  require(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<double> times;
  for (int i = 0; i < 25; ++i) {
    require(cudaEventRecord(begin), "cudaEventRecord");
    launch();
    require(cudaEventRecord(end), "cudaEventRecord");
    require(cudaEventSynchronize(end), "cudaEventSynchronize");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    if (i >= 5) times.push_back(static_cast<double>(milliseconds) * 1e3);
  }
  std::sort(times.begin(), times.end());
  require(cudaEventDestroy(begin), "cudaEventDestroy");
  require(cudaEventDestroy(end), "cudaEventDestroy");
  return times[times.size() / 2];
}

void say_time(const char* what, std::size_t n, double microseconds, double bytes) {
  std::printf("time       %-18s %5.1f M elements %9.1f us %7.0f GB/s\n", what,
              static_cast<double>(n) * 1e-6, microseconds, bytes / microseconds * 1e-3);
}

void time_one(std::size_t n) {
  const auto kept = static_cast<std::int64_t>(n / 1000);
  std::mt19937 random(1);
  // Gradients are small beside the residuals, so that thresholds move as in training.
  Values few = normal(1 << 20, random);
  Values values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = few[(i * 2654435761u) % few.size()];
  DeviceArray<float> velocity(values), residual(values);
  for (auto& value : values) value *= 1e-3f;
  DeviceArray<float> gradient(values);
  DgcPlan plan;
  require(dgc_plan({{gradient.data(), velocity.data(), residual.data(), nullptr,
                     static_cast<std::int64_t>(n), kept}},
                   ElementType::kFp32, &plan));
  DeviceArray<unsigned char> workspace(plan.workspace_bytes);
  require(dgc_prepare(&plan, workspace.data(), plan.workspace_bytes, nullptr));
  DeviceArray<std::uint32_t> indices(static_cast<std::size_t>(plan.packed));
  DeviceArray<float> sent(static_cast<std::size_t>(plan.packed));
  DeviceArray<DgcReport> reports(1);
  DgcStep step;
  step.indices = indices.data();
  step.values = sent.data();
  step.reports = reports.data();
  for (int i = 0; i < 20; ++i) require(dgc_step(plan, step, nullptr));  // into a steady state
  const double elements = static_cast<double>(n);
  const double speculative = median_microseconds([&] { require(dgc_step(plan, step, nullptr)); });
  const char* path = path_name(reports.get()[0].path);
  say_time((std::string("dgc ") + path).c_str(), n, speculative, 20 * elements);
  step.candidate_scale = 0;
  const double exact = median_microseconds([&] { require(dgc_step(plan, step, nullptr)); });
  path = path_name(reports.get()[0].path);
  say_time((std::string("dgc ") + path).c_str(), n, exact, 24 * elements);

  constexpr int kRanks = 8;
  SparsePlan sparse;
  require(sparse_plan({{velocity.data(), static_cast<std::int64_t>(n), kept}}, &sparse));
  DeviceArray<unsigned char> sparse_workspace(sparse.workspace_bytes);
  require(sparse_prepare(&sparse, sparse_workspace.data(), sparse.workspace_bytes, nullptr));
  std::vector<std::uint32_t> lists;
  for (int rank = 0; rank < kRanks; ++rank) {
    for (std::int64_t i = 0; i < kept; ++i) {
      lists.push_back(static_cast<std::uint32_t>(i * 1000 + random() % 1000));
    }
  }
  DeviceArray<std::uint32_t> sparse_indices(lists);
  DeviceArray<float> sparse_values(Values(lists.size(), 0.5f));
  DeviceArray<std::uint32_t> rejected(1);
  const SparseApply apply{
      kRanks, sparse_indices.data(), sparse_values.data(), kept, 0.01f, rejected.data(), true};
  const double applied =
      median_microseconds([&] { require(sparse_apply(sparse, apply, nullptr)); });
  say_time("sparse, 8 ranks", n, applied, 72.0 * static_cast<double>(lists.size()));
}

int check_all(bool time) {
  Checks checks("dgc");
  check_types_and_forms(checks);
  check_paths(checks);
  check_kinds(checks);
  check_not_finite(checks);
  check_many_tensors(checks);
  check_repetition(checks);
  check_sampled(checks);
  for (const int ranks : {1, 2, 8, 11, 64}) {
    check_sparse(checks, ranks, true, false);
    check_sparse(checks, ranks, false, false);
    check_sparse(checks, ranks, true, true);
  }
  if (time) {
    for (const std::size_t n : {25500000, 110000000, 340000000}) time_one(n);
  }
  return checks.result();
}

}  // namespace
}  // namespace syncline::kernels

int main(int count, char** arguments) {
  return syncline::kernels::check_all(count > 1 && std::strcmp(arguments[1], "--time") == 0);
}
