#include "kernels/batch_norm.h"

#include <limits>
#include <string>

#include "kernels/batch_norm_tile.h"

namespace syncline::kernels {
namespace {

Status check_array(const char* name, const void* address, ElementType type) {
  const std::string which = std::string("batch_norm: ") + name;
  if (address == nullptr) return failure(which + " is a null pointer");
  if (!aligned_to_element(address, type)) {
    return failure(which + " is not aligned to its element size");
  }
  return {};
}

struct NamedArray {
  const char* name;
  const void* address;
  ElementType type;
};

Status check_arrays(std::initializer_list<NamedArray> arrays) {
  for (const auto& [name, address, type] : arrays) {
    if (auto status = check_array(name, address, type); !status.ok()) return status;
  }
  return {};
}

Status check_common(const BatchNorm& norm) {
  if (!known(norm.type)) return failure("batch_norm: unknown element type");
  if (norm.rows < 1 || norm.channels < 1) {
    return failure("batch_norm: " + std::to_string(norm.rows) + " rows of " +
                   std::to_string(norm.channels) + " channels; at least one of each");
  }
  const auto grid = batch_norm_grid(norm.rows, norm.channels, 1);
  const std::int64_t written = (norm.rows + kWrittenRows - 1) / kWrittenRows;
  if (written > std::numeric_limits<std::int32_t>::max() / grid.channel_tiles) {
    return failure("batch_norm: more rows and channels than one launch takes");
  }
  if (!is_finite(norm.epsilon) || norm.epsilon < 0) {
    return failure("batch_norm: epsilon is negative or not finite");
  }
  constexpr auto kFloat = ElementType::kFp32;
  if (norm.residual != nullptr) {
    if (auto status = check_array("residual", norm.residual, norm.type); !status.ok()) {
      return status;
    }
  }
  return check_arrays({{"x", norm.x, norm.type},
                       {"gamma", norm.gamma, kFloat},
                       {"beta", norm.beta, kFloat},
                       {"mean", norm.mean, kFloat},
                       {"inverse_deviation", norm.inverse_deviation, kFloat},
                       {"workspace", norm.workspace, kFloat}});
}

}  // namespace

Status check_batch_norm(const BatchNorm& norm, const RunningStatistics& running, const void* y) {
  if (auto status = check_common(norm); !status.ok()) return status;
  if ((running.mean == nullptr) != (running.variance == nullptr)) {
    return failure("batch_norm: running mean and running variance must be given together");
  }
  if (!(running.momentum >= 0 && running.momentum <= 1)) {
    return failure("batch_norm: the momentum of running statistics is not in [0, 1]");
  }
  return check_array("y", y, norm.type);
}

Status check_batch_norm_gradient(const BatchNorm& norm, const BatchNormGradients& gradients) {
  if (auto status = check_common(norm); !status.ok()) return status;
  if ((norm.residual == nullptr) != (gradients.dresidual == nullptr)) {
    return failure("batch_norm: residual and dresidual must be given together");
  }
  if (gradients.dresidual != nullptr && !aligned_to_element(gradients.dresidual, norm.type)) {
    return failure("batch_norm: dresidual is not aligned to its element size");
  }
  return check_arrays({{"dy", gradients.dy, norm.type},
                       {"dx", gradients.dx, norm.type},
                       {"dgamma", gradients.dgamma, ElementType::kFp32},
                       {"dbeta", gradients.dbeta, ElementType::kFp32}});
}

std::int64_t batch_norm_workspace(std::int64_t rows, std::int32_t channels) {
  return 2 * batch_norm_grid(rows, channels, 1).row_tiles * channels;
}

}  // namespace syncline::kernels
