// PyTorch's launches for uncompiled modules: instead of one kernel, a chain of kernels writes every
// value in between to memory.
#include <algorithm>
#include <array>
#include <string_view>

#include "catalogue/architectures/architecture.h"

namespace syncline::operators {
namespace {

// A chain's bytes as a multiple of the kernel's own, and its number of kernels. Counted, byte for
// byte, on the modules of transformers (modeling_llama.py: LlamaRMSNorm, apply_rotary_pos_emb,
// LlamaMLP; activations.py: NewGELUActivation; loss_utils.py: logits.float()), torch.optim.AdamW's
// lists and torch.autocast's casts to fp32 (norms, powers, the loss, hence the residuals).
struct Chain {
  std::string_view kind;
  double fp32, half, autocast;
  int kernels;
};

constexpr auto kChains = std::to_array<Chain>({
    {"rms_norm", 28. / 8, 36. / 4, 34. / 4, 7},
    {"rms_norm_grad", 76. / 20, 76. / 10, 82. / 10, 7},  // a kernel each for x and the weight
    {"fused_rope", 40. / 8, 20. / 4, 36. / 4, 5},
    {"fused_rope_grad", 60. / 8, 30. / 4, 52. / 4, 9},
    {"swiglu", 20. / 12, 10. / 6, 10. / 6, 2},
    {"swiglu_grad", 36. / 20, 18. / 10, 18. / 10, 3},
    // Not counted but measured on an H200 (scenarios/published/gpu): cuDNN's kernels, and PyTorch's
    // own for channels last in half precision.
    {"batch_norm", 1.6, 3, 3, 2},
    {"batch_norm_grad", 1.95, 1.45, 1.45, 2},
    {"layer_norm", 1, 1, 14. / 4, 2},
    {"layer_norm_grad", 1, 1, 26. / 10, 1},
    {"elementwise_add", 1, 1, 10. / 6, 1},
    {"sum", 1, 1, 2, 1},
    {"softmax_with_cross_entropy", 1, 14. / 4, 14. / 4, 3},
    {"softmax_with_cross_entropy_grad", 16. / 8, 22. / 4, 22. / 4, 4},
    {"adam", 80. / 28, 40. / 14, 80. / 28, 1},
    {"fused_gemm_epilogue_grad", 1, 1, 1, 3},  // the bias's gradient is a separate sum
});
// GPT-2's activation: eight operations for tanh's approximation, its power in fp32 under autocast.
constexpr auto kNewGelu = std::to_array<Chain>({
    {"gelu", 72. / 8, 36. / 4, 76. / 4, 8},
    {"gelu_grad", 124. / 12, 62. / 6, 124. / 6, 12},
});

const Chain* chain_of(const Operator& op, bool new_gelu) {
  const auto named = [&](const Chain& chain) { return chain.kind == op.kind; };
  const auto* chain = std::find_if(kChains.begin(), kChains.end(), named);
  if (chain != kChains.end()) return chain;
  const auto* gelu = std::find_if(kNewGelu.begin(), kNewGelu.end(), named);
  return new_gelu && gelu != kNewGelu.end() ? gelu : nullptr;
}

}  // namespace

void set_eager_kernels(OperatorList& list, const ArchitectureOptions& options, bool new_gelu) {
  for (Operator& op : list.operators) {
    const Chain* chain = chain_of(op, new_gelu);
    if (chain == nullptr) continue;
    const double times = options.dtype == DType::kFp32 ? chain->fp32
                         : options.fp32_gradients      ? chain->autocast
                                                       : chain->half;
    op.kernels = std::max(op.kernels, chain->kernels);
    if (times <= 1) continue;
    // The chain's bytes beyond the kernel's own operands are one more value in memory.
    list.values.push_back({"", static_cast<Bytes>((times - 1) * traffic(list, op))});
    op.outputs.push_back({static_cast<int>(list.values.size()) - 1});
  }
}

}  // namespace syncline::operators
