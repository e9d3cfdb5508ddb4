#include "kernels/update.h"

#include "kernels/launch.h"
#include "kernels/update_tile.h"

namespace syncline::kernels {
namespace {

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
  Grid grid;
  if (auto status = blocks_for(kernel, tiles, &grid); !status.ok()) return status;
  return launch("update_kernel", kernel, grid, stream, bucket, options, scaling, tiles, state);
}

template <typename Rule>
Status launch_typed(const FlatBucket& bucket, const typename Rule::Options& options,
                    const GradientScaling& scaling, UpdateState* state, cudaStream_t stream) {
  switch (bucket.gradient_type) {
    case ElementType::kBf16:
      return launch_one<Rule, Bf16>(bucket, options, scaling, state, stream);
    case ElementType::kFp16:
      return launch_one<Rule, Fp16>(bucket, options, scaling, state, stream);
    case ElementType::kFp32:
      break;
  }
  return launch_one<Rule, float>(bucket, options, scaling, state, stream);
}

}  // namespace

Status update_sgd(const FlatBucket& bucket, const SgdOptions& options,
                  const GradientScaling& scaling, UpdateState* state, cudaStream_t stream) {
  if (auto status = check_update(bucket, options, scaling, state); !status.ok()) return status;
  return options.momentum == 0
             ? launch_typed<SgdRule>(bucket, options, scaling, state, stream)
             : launch_typed<MomentumRule>(bucket, options, scaling, state, stream);
}

Status update_adam(const FlatBucket& bucket, const AdamOptions& options,
                   const GradientScaling& scaling, UpdateState* state, cudaStream_t stream) {
  if (auto status = check_update(bucket, options, scaling, state); !status.ok()) return status;
  return launch_typed<AdamRule>(bucket, options, scaling, state, stream);
}

}  // namespace syncline::kernels
