// Weights and optimizer states are fp32; gradients fp32, bf16 or fp16, read where the all-reduce
// left them. Bytes an element, read and written, with fp32 (2-byte) gradients: SGD 12 (10),
// momentum 20 (18), Adam 28 (26); the bf16 copy adds 2. At an H200's 4.8 TB/s (data sheet) momentum
// takes at least 106, 458 and 1417 us for 25.5 M, 110 M and 340 M elements, Adam 149, 642 and 1983.
//
// Arrays at multiples of 16 bytes run at full speed, as do arrays misaligned alike. Every element
// is computed alone, in fp32: the result depends neither on the grid nor on how a bucket is split.
#include "kernels/update.h"

#include <cmath>

#include "kernels/launch.h"

namespace syncline::kernels {
namespace {

// A rule is what one step does to every element, its scalars ready: `apply` takes the gradient and
// the states, changes the states and returns the new weight. kAtOnce groups are loaded before the
// first is computed: as many as the registers hold.
struct SgdRule {
  static constexpr int kStates = 0;
  static constexpr int kAtOnce = 4;
  using Options = SgdOptions;

  float learning_rate;
  float weight_decay;

  SYNCLINE_HOST_DEVICE float apply(float weight, float gradient, float*) const {
    gradient += weight_decay * weight;
    return weight - learning_rate * gradient;
  }
};

struct MomentumRule {
  static constexpr int kStates = 1;
  static constexpr int kAtOnce = 2;
  using Options = SgdOptions;

  float learning_rate;
  float weight_decay;
  float momentum;
  float taken;  // of the gradient: 1 - dampening, and all of it in the first step
  bool nesterov;

  SYNCLINE_HOST_DEVICE float apply(float weight, float gradient, float* state) const {
    gradient += weight_decay * weight;
    state[0] = momentum * state[0] + taken * gradient;
    const float direction = nesterov ? gradient + momentum * state[0] : state[0];
    return weight - learning_rate * direction;
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
  float decay;   // into the gradient
  float shrink;  // of the weight: 1, or for AdamW 1 - learning rate * weight decay

  SYNCLINE_HOST_DEVICE float apply(float weight, float gradient, float* state) const {
    weight *= shrink;
    gradient += decay * weight;
    state[0] = beta1 * state[0] + rest1 * gradient;
    state[1] = beta2 * state[1] + rest2 * (gradient * gradient);
    return weight - step_size * (state[0] / (sqrtf(state[1]) / root_correction2 + epsilon));
  }
};

SYNCLINE_HOST_DEVICE inline void make_rule(const SgdOptions& options, const UpdateState&,
                                           SgdRule& rule) {
  rule.learning_rate = static_cast<float>(options.learning_rate);
  rule.weight_decay = static_cast<float>(options.weight_decay);
}

// In the first step torch's buffer is the gradient itself, without dampening.
SYNCLINE_HOST_DEVICE inline void make_rule(const SgdOptions& options, const UpdateState& state,
                                           MomentumRule& rule) {
  rule.learning_rate = static_cast<float>(options.learning_rate);
  rule.weight_decay = static_cast<float>(options.weight_decay);
  rule.momentum = static_cast<float>(options.momentum);
  rule.taken = state.steps == 0 ? 1.0f : static_cast<float>(1 - options.dampening);
  rule.nesterov = options.nesterov;
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
  const double decay = options.learning_rate * options.weight_decay;
  rule.decay = options.decoupled ? 0.0f : static_cast<float>(options.weight_decay);
  rule.shrink = options.decoupled ? static_cast<float>(1 - decay) : 1.0f;
}

SYNCLINE_HOST_DEVICE inline void advance(const SgdOptions&, bool skip, UpdateState& state) {
  (skip ? state.skipped : state.steps) += 1;
}

SYNCLINE_HOST_DEVICE inline void advance(const AdamOptions& options, bool skip,
                                         UpdateState& state) {
  (skip ? state.skipped : state.steps) += 1;
  if (skip) return;
  state.beta1_power *= options.beta1;
  state.beta2_power *= options.beta2;
}

SYNCLINE_HOST_DEVICE inline bool skips(const GradientScaling& scaling) {
  return scaling.non_finite != nullptr && *scaling.non_finite != 0;
}

SYNCLINE_HOST_DEVICE inline float factor_of(const GradientScaling& scaling) {
  return scaling.clip_coefficient == nullptr ? scaling.unscale
                                             : scaling.unscale * *scaling.clip_coefficient;
}

// Groups of four follow the weights' addresses.
SYNCLINE_HOST_DEVICE inline int update_shift(const FlatBucket& bucket) {
  return misalignment<4>(bucket.weights);
}

// The arrays of a bucket as a tile sees them: where it begins (before the first element, perhaps),
// and which of them can be read and written four elements at once.
template <typename Gradient, typename Rule>
struct UpdateTile {
  static constexpr int kGroup = 4;
  static constexpr int kAtOnce = Rule::kAtOnce;
  static constexpr int kStates = Rule::kStates;
  static constexpr int kRoom = kStates > 0 ? kStates : 1;  // no arrays of no elements
  static constexpr int kStride = kBlockThreads * kGroup;

  // Groups of four in registers, a stride apart.
  struct Groups {
    float gradient[kAtOnce][kGroup];
    float weight[kAtOnce][kGroup];
    float state[kAtOnce][kRoom][kGroup];
  };

  const FlatBucket& bucket;
  const Gradient* gradients;
  float* states[2];
  std::int64_t start;
  bool gradients_aligned;
  bool states_aligned[kRoom];
  bool copy_aligned;
  bool whole;  // all lie inside the arrays, and all are aligned

  SYNCLINE_HOST_DEVICE UpdateTile(const FlatBucket& flat, std::int64_t tile)
      : bucket(flat),
        gradients(static_cast<const Gradient*>(flat.gradients)),
        states{flat.first_moment, flat.second_moment},
        start(tile * kTileElements - update_shift(flat)) {
    gradients_aligned = aligned_at<kGroup>(gradients, start);
    whole = gradients_aligned && start >= 0 && start + kTileElements <= bucket.elements;
    SYNCLINE_UNROLL
    for (int s = 0; s < kStates; ++s) {
      states_aligned[s] = aligned_at<kGroup>(states[s], start);
      whole = whole && states_aligned[s];
    }
    copy_aligned = bucket.copy != nullptr && aligned_at<kGroup>(bucket.copy, start);
    whole = whole && (bucket.copy == nullptr || copy_aligned);
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
        if (bucket.copy != nullptr) store_vector<Reuse::kKeep>(bucket.copy + at, groups.weight[i]);
      } else {
        store_group<Reuse::kKeep>(bucket.weights, at, size, true, groups.weight[i]);
        SYNCLINE_UNROLL
        for (int s = 0; s < kStates; ++s) {
          store_group<Reuse::kStream>(states[s], at, size, states_aligned[s], groups.state[i][s]);
        }
        if (bucket.copy != nullptr) {
          store_group<Reuse::kKeep>(bucket.copy, at, size, copy_aligned, groups.weight[i]);
        }
      }
    }
  }
};

// The rule for every element of the groups, in registers.
template <typename Rule, typename Groups>
SYNCLINE_HOST_DEVICE inline void apply_rule(const Rule& rule, float factor, Groups& groups) {
  constexpr int kGroup = 4;
  SYNCLINE_UNROLL
  for (int i = 0; i < Rule::kAtOnce; ++i) {
    SYNCLINE_UNROLL
    for (int j = 0; j < kGroup; ++j) {
      float each[Rule::kStates > 0 ? Rule::kStates : 1];
      SYNCLINE_UNROLL
      for (int s = 0; s < Rule::kStates; ++s) each[s] = groups.state[i][s][j];
      groups.weight[i][j] = rule.apply(groups.weight[i][j], factor * groups.gradient[i][j], each);
      SYNCLINE_UNROLL
      for (int s = 0; s < Rule::kStates; ++s) groups.state[i][s][j] = each[s];
    }
  }
}

template <typename Gradient, typename Rule>
SYNCLINE_HOST_DEVICE inline void update_tile(const FlatBucket& bucket, const Rule& rule,
                                             float factor, std::int64_t tile, int thread) {
  using Tile = UpdateTile<Gradient, Rule>;
  const Tile arrays(bucket, tile);
  constexpr int kGroups = kTileElements / kBlockThreads / Tile::kGroup;
  for (int begin = 0; begin < kGroups; begin += Rule::kAtOnce) {
    const std::int64_t first = arrays.start + thread * Tile::kGroup + begin * Tile::kStride;
    typename Tile::Groups groups;
    arrays.load(first, groups);
    apply_rule(rule, factor, groups);
    arrays.store(first, groups);
  }
}

template <typename Rule, typename Gradient>
__global__ void __launch_bounds__(kBlockThreads, 4)
    update_kernel(const __grid_constant__ FlatBucket bucket,
                  const __grid_constant__ typename Rule::Options options, GradientScaling scaling,
                  std::int64_t tiles, UpdateState* state) {
  __shared__ Rule shared_rule;
  __shared__ float shared_factor;
  __shared__ bool skip;
  KernelBlock block;
  block.each([&](int thread) {
    if (thread != 0) return;
    make_rule(options, *state, shared_rule);
    shared_factor = factor_of(scaling);
    skip = skips(scaling);
  });
  block.each([&](int thread) {
    if (skip) return;
    const Rule rule = shared_rule;
    const float factor = shared_factor;
    for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      update_tile<Gradient>(bucket, rule, factor, tile, thread);
    }
  });
  // Every block has read the state before the last one comes here.
  if (!block.last_of(&state->ticket, gridDim.x)) return;
  block.each([&](int thread) {
    if (thread == 0) advance(options, skip, *state);
  });
}

template <typename Rule, typename Gradient>
Status launch_one(const FlatBucket& bucket, const typename Rule::Options& options,
                  const GradientScaling& scaling, UpdateState* state, cudaStream_t stream) {
  const auto kernel = update_kernel<Rule, Gradient>;
  const std::int64_t tiles = tiles_of(bucket.elements, update_shift(bucket));
  LaunchGrid grid;
  if (auto status = blocks_for(kernel, tiles, &grid); !status.ok()) return status;
  return launch("update_kernel", kernel, grid, stream, bucket, options, scaling, tiles, state);
}

template <typename Rule>
Status launch_typed(const FlatBucket& bucket, const typename Rule::Options& options,
                    const GradientScaling& scaling, UpdateState* state, cudaStream_t stream) {
  return with_type(bucket.gradient_type, [&](auto gradient) {
    return launch_one<Rule, decltype(gradient)>(bucket, options, scaling, state, stream);
  });
}

}  // namespace

Status update_sgd(const FlatBucket& bucket, const SgdOptions& options,
                  const GradientScaling& scaling, UpdateState* state, cudaStream_t stream) {
  return options.momentum == 0
             ? launch_typed<SgdRule>(bucket, options, scaling, state, stream)
             : launch_typed<MomentumRule>(bucket, options, scaling, state, stream);
}

Status update_adam(const FlatBucket& bucket, const AdamOptions& options,
                   const GradientScaling& scaling, UpdateState* state, cudaStream_t stream) {
  return launch_typed<AdamRule>(bucket, options, scaling, state, stream);
}

}  // namespace syncline::kernels
