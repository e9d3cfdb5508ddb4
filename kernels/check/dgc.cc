// Checks DGC's kernels against their host reference, to the bit: all paths and sparse updates.
#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/compress/momentum_correction.h"
#include "kernels/check/check.h"
#include "kernels/dgc_step.h"
#include "kernels/reference/optimizers.h"
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
  Values gradient, velocity, residual;
  std::int64_t kept = 0;
  int offset = 0;  // all arrays' offset; an odd one is one more for the gradient
};

Values normal(std::size_t n, std::mt19937& random, float deviation = 1) {
  std::normal_distribution<float> draw(0, deviation);
  Values values(n);
  for (auto& value : values) value = draw(random);
  return values;
}

CheckedTensor random_tensor(std::size_t n, std::int64_t kept, std::uint32_t seed, int offset = 0) {
  std::mt19937 random(seed);
  return {normal(n, random), normal(n, random), normal(n, random), kept, offset};
}

const char* path_name(DgcPath path) {
  constexpr const char* kNames[] = {"?", "speculative", "exact", "recount", "whole", "nothing"};
  const auto number = static_cast<std::uint32_t>(path);
  return number < 6 ? kNames[number] : "?";
}

// Tensors on both sides, stepped together.
class DgcCase {
 public:
  DgcCase(Checks& checks, std::vector<CheckedTensor> tensors)
      : checks_(checks), hosts_(std::move(tensors)) {
    std::vector<DgcTensor> list;
    for (auto& host : hosts_) {
      gradients_.emplace_back(host.gradient, host.offset % 2 ? host.offset + 1 : host.offset);
      velocities_.emplace_back(host.velocity, host.offset);
      residuals_.emplace_back(host.residual, host.offset);
      list.push_back({gradients_.back().data(), velocities_.back().data(), residuals_.back().data(),
                      static_cast<std::int64_t>(host.gradient.size()), host.kept});
    }
    require(dgc_plan(list, &plan_));
    workspace_.emplace_back(plan_.workspace_bytes);
    require(dgc_prepare(&plan_, workspace_[0].data(), nullptr));
  }

  void next_gradient(const Values& values, std::size_t tensor = 0) {
    hosts_[tensor].gradient = values;
    gradients_[tensor].put(values);
  }

  void next_gradients(std::uint32_t seed, float deviation) {
    std::mt19937 random(seed);
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      next_gradient(normal(hosts_[i].gradient.size(), random, deviation), i);
    }
  }

  // Does a step. `path`: the path expected of the last tensor.
  void step(const std::string& name, DgcStep step, std::optional<DgcPath> path = {}) {
    const auto packed = static_cast<std::size_t>(plan_.packed);
    DeviceArray<std::uint32_t> indices(packed);
    DeviceArray<float> values(packed, 1);
    DeviceArray<DgcReport> reports(hosts_.size());
    step.indices = indices.data();
    step.values = values.data();
    step.reports = reports.data();
    require(dgc_step(plan_, step, nullptr));
    wait_for_gpu();
    const auto got_indices = indices.get();
    const auto got_values = values.get();
    const auto got_reports = reports.get();
    std::string difference;
    if (!indices.intact() || !values.intact()) difference = "a message's guards fell";
    std::size_t at = 0;
    for (std::size_t i = 0; i < hosts_.size() && difference.empty(); ++i) {
      difference = compare(i, step, got_indices, got_values, got_reports[i], &at);
    }
    const std::string note = hosts_.size() == 1 ? path_name(got_reports[0].path) : "";
    if (path && got_reports.back().path != *path) {
      difference = std::string("took the way ") + path_name(got_reports.back().path);
    }
    checks_.line(name, difference.empty(), difference.empty() ? note : difference);
  }

 private:
  // Compares one tensor and advances `packed_at`, the beginning of its part of the message.
  std::string compare(std::size_t i, const DgcStep& step, const std::vector<std::uint32_t>& indices,
                      const Values& values, const DgcReport& report, std::size_t* packed_at) {
    CheckedTensor& host = hosts_[i];
    compress::accumulate(host.gradient, {}, {.momentum = step.momentum}, host.velocity,
                         host.residual);
    SparseMessage message =
        extract(largest_magnitudes(host.residual, host.kept), host.velocity, host.residual);
    if (report.selected != message.indices.size()) {
      return "the report's count";
    }
    const auto kept = std::min(static_cast<std::size_t>(host.kept), host.residual.size());
    message.indices.resize(kept, kPadIndex);
    message.values.resize(kept, 0.0f);
    const auto begin = static_cast<std::ptrdiff_t>(*packed_at);
    *packed_at += kept;
    const auto end = static_cast<std::ptrdiff_t>(*packed_at);
    const std::vector<std::uint32_t> got_indices(indices.begin() + begin, indices.begin() + end);
    const Values got_values(values.begin() + begin, values.begin() + end);
    const std::string where = "tensor " + std::to_string(i) + " (" + path_name(report.path) + "): ";
    if (!same_bits(velocities_[i].get(), host.velocity)) return where + "velocity";
    if (!same_bits(residuals_[i].get(), host.residual)) return where + "residual";
    if (!same_bits(got_indices, message.indices)) return where + "indices";
    if (!same_bits(got_values, message.values)) return where + "values";
    if (!velocities_[i].intact() || !residuals_[i].intact()) return where + "guards";
    return "";
  }

  Checks& checks_;
  std::vector<CheckedTensor> hosts_;
  std::deque<DeviceArray<float>> gradients_, velocities_, residuals_;
  std::deque<DeviceArray<unsigned char>> workspace_;
  DgcPlan plan_;
};

// ---- Cases --------------------------------------------------------------------------------------

void check_sizes(Checks& checks) {
  std::vector<CheckedTensor> tensors;
  std::uint32_t seed = 1;
  for (const std::size_t n :
       {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{4}, std::size_t{2049},
        std::size_t{4095}, std::size_t{4096}, std::size_t{4097}, checks.size(kBusy, 9001)}) {
    for (int offset = 0; offset < 4; ++offset) {
      const auto elements = static_cast<std::int64_t>(n);
      const std::int64_t kept[] = {elements / 1000, elements / 40, elements, elements + 5};
      ++seed;
      tensors.push_back(random_tensor(n, kept[(seed + n) % 4], seed, offset));
    }
  }
  DgcCase one(checks, std::move(tensors));
  for (int i = 0; i < 3; ++i) {
    one.step("dgc of all sizes, step " + std::to_string(i), {});
    one.next_gradients(++seed, 0.1f);
  }
}

// Checks that each scale takes its path, and that all paths equal the reference.
void check_paths(Checks& checks) {
  const struct {
    float scale;
    DgcPath path;
  } ways[] = {{0.0f, DgcPath::kExact},
              {0.95f, DgcPath::kSpeculative},
              {1.9f, DgcPath::kExact},
              {100.0f, DgcPath::kRecount},
              {1e-3f, DgcPath::kExact}};
  const std::size_t n = checks.size(1000003, 20011);
  for (const auto& way : ways) {
    DgcCase one(checks, {random_tensor(n, static_cast<std::int64_t>(n) / 1000, 77)});
    DgcStep step;
    one.step("dgc first", step, DgcPath::kExact);
    // The candidates take a fifth of the list, which has room for 16 times the number sent.
    step.momentum = 0.1f;
    step.candidate_scale = way.scale;
    one.next_gradients(5, 0.05f);
    // The velocity persists: thresholds rise a little, so that the guess holds.
    one.step("dgc candidates from " + std::to_string(way.scale) + " x threshold", step, way.path);
  }
  DgcCase many(checks, {random_tensor(3000, 1500, 78)});
  many.step("dgc more than one in 32 kept", {}, DgcPath::kWhole);
}

// Checks candidates of exactly the number to send, one less, exactly the list's room, one more.
void check_edges(Checks& checks) {
  const std::size_t n = 30000;
  const std::size_t room = 16 * 10 + 1024;
  const struct {
    std::size_t candidates;
    std::optional<DgcPath> path;
  } edges[] = {{10, DgcPath::kSpeculative},
               {9, {}},
               {room, DgcPath::kSpeculative},
               {room + 1, DgcPath::kWhole}};
  for (const auto& edge : edges) {
    Values first(n, 0.0f);
    for (std::size_t i = 0; i < 10; ++i) first[i * 977] = 10.0f;
    DgcCase one(checks, {{Values(n), Values(n), first, 10, 0}});
    DgcStep step;
    step.momentum = 0;
    step.candidate_scale = 1;
    one.step("dgc before an edge", step);
    // All sent elements are 0 now, and the gradient gives the candidates: 10 and above. 9.9 and 10
    // are in one bin of eighths of an octave: without a guess all are candidates.
    Values next(n, 9.9f);
    for (std::size_t i = 0; i < edge.candidates; ++i) next[(i * 23 + 5) % n] = 10.0f;
    one.next_gradient(next);
    one.step("dgc " + std::to_string(edge.candidates) + " candidates", step, edge.path);
  }
}

void check_kinds(Checks& checks) {
  const std::size_t n = checks.size(300007, 20011);
  const auto all = static_cast<std::int64_t>(n);
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
         return static_cast<float>(random() % 1000) * (i / 1024 == 10 ? 1.0f : 1e-3f);
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
    for (const std::int64_t kept :
         {std::int64_t{0}, std::int64_t{1}, all / 1000, all / 33, all / 2, all - 1, all, all + 9}) {
      DgcCase one(checks, {{Values(n), Values(n), residual, kept, 1}});
      for (int i = 0; i < 2; ++i) {
        one.step("dgc " + std::string(kind.name) + ", kept " + std::to_string(kept), {});
      }
    }
  }
}

void check_not_finite(Checks& checks) {
  CheckedTensor tensor = random_tensor(50000, 50, 1);
  tensor.gradient[777] = std::numeric_limits<float>::quiet_NaN();
  DgcCase held(checks, {tensor});
  held.step("dgc has what is not finite", {});
}

void check_many_tensors(Checks& checks) {
  std::vector<CheckedTensor> tensors;
  for (std::uint32_t i = 0; i < 700; ++i) {
    tensors.push_back(random_tensor(i % 11 == 0 ? 0 : i * i % checks.size(30011, 911), i % 50, i,
                                    static_cast<int>(i % 4)));
  }
  DgcCase one(checks, std::move(tensors));
  for (int i = 0; i < 3; ++i) one.step("dgc 700 tensors", {});
}

// Checks long tensors: spans of 32 tiles, and more spans than a block has threads. Twice.
void check_long(Checks& checks) {
  const std::size_t n = checks.size(8'000'003, 2048 * 4 * 257 + 77);
  for (int i = 0; i < 2; ++i) {
    DgcCase one(checks, {random_tensor(n, 2000, 5)});
    one.step("dgc long", {});
    one.step("dgc long, again", {});
  }
}

void check_sparse(Checks& checks, int ranks, bool bad) {
  std::mt19937 random(static_cast<std::uint32_t>(ranks));
  const auto large = static_cast<std::int64_t>(checks.size(1000003, 20011));
  const std::vector<std::int64_t> sizes{1, 100, 7001, large};
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
  require(sparse_prepare(&plan, workspace.data(), nullptr));
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
      if (bad && rank == ranks - 1 && i == 2) message.indices[77] = 7001;
      indices.insert(indices.end(), message.indices.begin(), message.indices.end());
      values.insert(values.end(), message.values.begin(), message.values.end());
      messages[i].push_back(std::move(message));
    }
  }
  DeviceArray<std::uint32_t> sent_indices(indices);
  DeviceArray<float> sent_values(values);
  DeviceArray<std::uint32_t> rejected(1);
  const SparseApply apply{ranks, sent_indices.data(), sent_values.data(), plan.packed,
                          0.25f, rejected.data()};
  require(sparse_apply(plan, apply, nullptr));
  wait_for_gpu();
  std::string difference;
  if ((rejected.get()[0] != 0) != bad) difference = "rejected";
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!bad) apply_messages(messages[i], 0.25f, host_weights[i]);
    if (!same_bits(weights[i].get(), host_weights[i])) difference = "weights";
    if (!weights[i].intact()) difference = "guards";
  }
  checks.line("sparse apply, " + std::to_string(ranks) + " ranks" + (bad ? ", a bad index" : ""),
              difference.empty(), difference);
}

}  // namespace

void check_dgc(Checks& checks) {
  check_sizes(checks);
  check_paths(checks);
  check_edges(checks);
  check_kinds(checks);
  check_not_finite(checks);
  check_many_tensors(checks);
  check_long(checks);
  for (const int ranks : {1, 2, 8, 11, 64}) {
    check_sparse(checks, ranks, false);
    check_sparse(checks, ranks, true);
  }
}

}  // namespace syncline::kernels
