#include "kernels/update.h"

#include <cmath>
#include <string>

#include "kernels/update_tile.h"

namespace syncline::kernels {
namespace {

bool outside(double value, double low, double high) { return !(value >= low && value < high); }

bool negative(double value) { return !std::isfinite(value) || value < 0; }

Status check_array(const char* name, const void* address, ElementType type, std::int64_t elements) {
  const std::string which = std::string("update: the ") + name;
  if (elements > 0 && address == nullptr) return failure(which + " are a null pointer");
  if (!aligned_to_element(address, type)) {
    return failure(which + " are not aligned to their element size");
  }
  return {};
}

Status check_common(const FlatBucket& bucket, const GradientScaling& scaling,
                    const UpdateState* state) {
  if (bucket.elements < 0) {
    return failure("update: the bucket has " + std::to_string(bucket.elements) + " elements");
  }
  if (!known(bucket.gradient_type)) return failure("update: unknown element type");
  if (state == nullptr) return failure("update: the state is a null pointer");
  if (!is_finite(scaling.unscale)) return failure("update: unscale is not finite");
  auto status = check_array("weights", bucket.weights, ElementType::kFp32, bucket.elements);
  if (status.ok()) {
    status = check_array("gradients", bucket.gradients, bucket.gradient_type, bucket.elements);
  }
  if (status.ok() && bucket.copy != nullptr) {
    status = check_array("copies of weights", bucket.copy, ElementType::kBf16, bucket.elements);
  }
  return status;
}

}  // namespace

Status check_update(const FlatBucket& bucket, const SgdOptions& options,
                    const GradientScaling& scaling, const UpdateState* state) {
  if (auto status = check_common(bucket, scaling, state); !status.ok()) return status;
  if (negative(options.learning_rate)) return failure("update: the learning rate is negative");
  if (negative(options.weight_decay)) return failure("update: the weight decay is negative");
  if (negative(options.momentum)) return failure("update: the momentum is negative");
  if (!std::isfinite(options.dampening)) return failure("update: the dampening is not finite");
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    return failure("update: Nesterov's momentum needs a momentum and no dampening");
  }
  if (options.momentum == 0) return {};
  return check_array("momentum buffers", bucket.first_moment, ElementType::kFp32, bucket.elements);
}

Status check_update(const FlatBucket& bucket, const AdamOptions& options,
                    const GradientScaling& scaling, const UpdateState* state) {
  if (auto status = check_common(bucket, scaling, state); !status.ok()) return status;
  if (negative(options.learning_rate)) return failure("update: the learning rate is negative");
  if (negative(options.weight_decay)) return failure("update: the weight decay is negative");
  if (negative(options.epsilon)) return failure("update: epsilon is negative");
  if (outside(options.beta1, 0, 1) || outside(options.beta2, 0, 1)) {
    return failure("update: a beta is not in [0, 1)");
  }
  auto status =
      check_array("first moments", bucket.first_moment, ElementType::kFp32, bucket.elements);
  if (!status.ok()) return status;
  return check_array("second moments", bucket.second_moment, ElementType::kFp32, bucket.elements);
}

}  // namespace syncline::kernels
