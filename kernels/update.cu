// Bytes per element, read and written: SGD 12, momentum 20, Adam 28. At an H200's 4.8 TB/s (data
// sheet) momentum takes at least 106, 458 and 1417 us for 25.5 M, 110 M and 340 M elements, Adam
// 149, 642 and 1983.
//
// Arrays at multiples of 16 bytes run at full speed, as do arrays with equal misalignment. Elements
// are computed independently, in fp32: neither grid nor buckets change the result.
#include "kernels/kernels.h"

#include <cmath>

#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

// A rule is one step's work on an element, with its scalars ready: `apply` takes the gradient and
// the states, changes the states and returns the new weight. kAtOnce groups are loaded before the
// first is computed, to fill the registers.
struct SgdRule {
  static constexpr int kStates = 0;
  static constexpr int kAtOnce = 4;
  using Options = SgdOptions;

  float learning_rate;

  SYNCLINE_HOST_DEVICE float apply(float weight, float gradient, float*) const {
    return weight - learning_rate * gradient;
  }
};

struct MomentumRule {
  static constexpr int kStates = 1;
  static constexpr int kAtOnce = 2;
  using Options = SgdOptions;

  float learning_rate;
  float momentum;

  SYNCLINE_HOST_DEVICE float apply(float weight, float gradient, float* state) const {
    state[0] = momentum * state[0] + gradient;
    return weight - learning_rate * state[0];
  }
};

struct AdamRule {
  static constexpr int kStates = 2;
  static constexpr int kAtOnce = 2;
  using Options = AdamOptions;

  float beta1;
  float beta2;
  float rest1;  // 1 - beta1
  float rest2;
  float step_size;         // learning rate / (1 - beta1^t)
  float root_correction2;  // sqrt(1 - beta2^t)
  float epsilon;

  SYNCLINE_HOST_DEVICE float apply(float weight, float gradient, float* state) const {
    state[0] = beta1 * state[0] + rest1 * gradient;
    state[1] = beta2 * state[1] + rest2 * (gradient * gradient);
    return weight - step_size * (state[0] / (sqrtf(state[1]) / root_correction2 + epsilon));
  }
};

SYNCLINE_HOST_DEVICE inline void make_rule(const SgdOptions& options, const UpdateState&,
                                           SgdRule& rule) {
  rule.learning_rate = static_cast<float>(options.learning_rate);
}

SYNCLINE_HOST_DEVICE inline void make_rule(const SgdOptions& options, const UpdateState&,
                                           MomentumRule& rule) {
  rule.learning_rate = static_cast<float>(options.learning_rate);
  rule.momentum = static_cast<float>(options.momentum);
}

SYNCLINE_HOST_DEVICE inline void make_rule(const AdamOptions& options, const UpdateState& state,
                                           AdamRule& rule) {
  const double correction1 = 1 - state.beta1_power * options.beta1;
  const double correction2 = 1 - state.beta2_power * options.beta2;
  rule.beta1 = static_cast<float>(options.beta1);
  rule.beta2 = static_cast<float>(options.beta2);
  rule.rest1 = static_cast<float>(1 - options.beta1);
  rule.rest2 = static_cast<float>(1 - options.beta2);
  rule.step_size = static_cast<float>(options.learning_rate / correction1);
  rule.root_correction2 = static_cast<float>(sqrt(correction2));
  rule.epsilon = static_cast<float>(options.epsilon);
}

SYNCLINE_HOST_DEVICE inline void advance(const SgdOptions&, UpdateState& state) { ++state.steps; }

SYNCLINE_HOST_DEVICE inline void advance(const AdamOptions& options, UpdateState& state) {
  ++state.steps;
  state.beta1_power *= options.beta1;
  state.beta2_power *= options.beta2;
}

// Returns the shift of groups of four, which are aligned to the weights' addresses.
SYNCLINE_HOST_DEVICE inline int update_shift(const FlatBucket& bucket) {
  return misalignment<4>(bucket.weights);
}

// The arrays of a bucket in one tile: the tile's start (perhaps before the first element), and the
// arrays that can be read and written four elements at once.
template <typename Rule>
struct UpdateTile {
  static constexpr int kGroup = 4;
  static constexpr int kAtOnce = Rule::kAtOnce;
  static constexpr int kStates = Rule::kStates;
  static constexpr int kRoom = kStates > 0 ? kStates : 1;  // an array needs at least one element
  static constexpr int kStride = kBlockThreads * kGroup;

  // Groups of four in registers, a stride apart.
  struct Groups {
    float gradient[kAtOnce][kGroup];
    float weight[kAtOnce][kGroup];
    float state[kAtOnce][kRoom][kGroup];
  };

  const FlatBucket& bucket;
  const float* gradients;
  float* states[2];
  std::int64_t start;
  bool gradients_aligned;
  bool states_aligned[kRoom];
  bool whole;  // all are aligned and inside the arrays

  SYNCLINE_HOST_DEVICE UpdateTile(const FlatBucket& flat, std::int64_t tile)
      : bucket(flat),
        gradients(flat.gradients),
        states{flat.first_moment, flat.second_moment},
        start(tile * kTileElements - update_shift(flat)) {
    gradients_aligned = is_aligned<kGroup>(gradients, start);
    whole = gradients_aligned && start >= 0 && start + kTileElements <= bucket.elements;
    SYNCLINE_UNROLL
    for (int s = 0; s < kStates; ++s) {
      states_aligned[s] = is_aligned<kGroup>(states[s], start);
      whole = whole && states_aligned[s];
    }
  }

  SYNCLINE_HOST_DEVICE void load(std::int64_t first, Groups& groups) const {
    const std::int64_t size = bucket.elements;
    SYNCLINE_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const std::int64_t at = first + i * kStride;
      if (whole) {
        load_vector<Reuse::kStream>(gradients + at, groups.gradient[i]);
        load_vector<Reuse::kStream>(bucket.weights + at, groups.weight[i]);
        SYNCLINE_UNROLL
        for (int s = 0; s < kStates; ++s) {
          load_vector<Reuse::kStream>(states[s] + at, groups.state[i][s]);
        }
      } else {
        load_group<Reuse::kStream>(gradients, at, size, gradients_aligned, groups.gradient[i]);
        load_group<Reuse::kStream>(bucket.weights, at, size, true, groups.weight[i]);
        SYNCLINE_UNROLL
        for (int s = 0; s < kStates; ++s) {
          load_group<Reuse::kStream>(states[s], at, size, states_aligned[s], groups.state[i][s]);
        }
      }
    }
  }

  SYNCLINE_HOST_DEVICE void store(std::int64_t first, const Groups& groups) const {
    const std::int64_t size = bucket.elements;
    SYNCLINE_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const std::int64_t at = first + i * kStride;
      if (whole) {
        store_vector<Reuse::kKeep>(bucket.weights + at, groups.weight[i]);
        SYNCLINE_UNROLL
        for (int s = 0; s < kStates; ++s) {
          store_vector<Reuse::kStream>(states[s] + at, groups.state[i][s]);
        }
      } else {
        store_group<Reuse::kKeep>(bucket.weights, at, size, true, groups.weight[i]);
        SYNCLINE_UNROLL
        for (int s = 0; s < kStates; ++s) {
          store_group<Reuse::kStream>(states[s], at, size, states_aligned[s], groups.state[i][s]);
        }
      }
    }
  }
};

// Applies the rule to every element of the groups, in registers.
template <typename Rule, typename Groups>
SYNCLINE_HOST_DEVICE inline void apply_rule(const Rule& rule, Groups& groups) {
  constexpr int kGroup = 4;
  SYNCLINE_UNROLL
  for (int i = 0; i < Rule::kAtOnce; ++i) {
    SYNCLINE_UNROLL
    for (int j = 0; j < kGroup; ++j) {
      float each[Rule::kStates > 0 ? Rule::kStates : 1];
      SYNCLINE_UNROLL
      for (int s = 0; s < Rule::kStates; ++s) each[s] = groups.state[i][s][j];
      groups.weight[i][j] = rule.apply(groups.weight[i][j], groups.gradient[i][j], each);
      SYNCLINE_UNROLL
      for (int s = 0; s < Rule::kStates; ++s) groups.state[i][s][j] = each[s];
    }
  }
}

template <typename Rule>
SYNCLINE_HOST_DEVICE inline void update_tile(const FlatBucket& bucket, const Rule& rule,
                                             std::int64_t tile, int thread) {
  using Tile = UpdateTile<Rule>;
  const Tile arrays(bucket, tile);
  constexpr int kGroups = kTileElements / kBlockThreads / Tile::kGroup;
  for (int begin = 0; begin < kGroups; begin += Rule::kAtOnce) {
    const std::int64_t first = arrays.start + thread * Tile::kGroup + begin * Tile::kStride;
    typename Tile::Groups groups;
    arrays.load(first, groups);
    apply_rule(rule, groups);
    arrays.store(first, groups);
  }
}

template <typename Rule>
__global__ void __launch_bounds__(kBlockThreads, 4)
    update_kernel(const __grid_constant__ FlatBucket bucket,
                  const __grid_constant__ typename Rule::Options options, std::int64_t tiles,
                  UpdateState* state) {
  __shared__ Rule shared_rule;
  KernelBlock block;
  block.each([&](int thread) {
    if (thread == 0) make_rule(options, *state, shared_rule);
  });
  block.each([&](int thread) {
    const Rule rule = shared_rule;
    for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      update_tile(bucket, rule, tile, thread);
    }
  });
  // All blocks have read the state before the last one arrives here.
  if (!block.last_of(&state->ticket, gridDim.x)) return;
  block.each([&](int thread) {
    if (thread == 0) advance(options, *state);
  });
}

template <typename Rule>
Status update(const FlatBucket& bucket, const typename Rule::Options& options, UpdateState* state,
              cudaStream_t stream) {
  const auto kernel = update_kernel<Rule>;
  const std::int64_t tiles = tiles_of(bucket.elements, update_shift(bucket));
  LaunchGrid grid;
  if (auto status = blocks_for(kernel, tiles, &grid); !status.ok()) return status;
  return launch("update_kernel", kernel, grid, stream, bucket, options, tiles, state);
}

}  // namespace

Status update_sgd(const FlatBucket& bucket, const SgdOptions& options, UpdateState* state,
                  cudaStream_t stream) {
  return options.momentum == 0 ? update<SgdRule>(bucket, options, state, stream)
                               : update<MomentumRule>(bucket, options, state, stream);
}

Status update_adam(const FlatBucket& bucket, const AdamOptions& options, UpdateState* state,
                   cudaStream_t stream) {
  return update<AdamRule>(bucket, options, state, stream);
}

}  // namespace syncline::kernels
