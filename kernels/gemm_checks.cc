#include <initializer_list>
#include <limits>
#include <string>

#include "kernels/gemm_epilogue.h"
#include "kernels/workspace.h"

namespace syncline::kernels {
namespace {

constexpr std::int64_t kMostElements = std::numeric_limits<std::int32_t>::max();
constexpr std::uintptr_t kAuxAlignment = 16;

struct Named {
  const char* name;
  const void* address;
};

Status check_shape(const std::string& launcher, const LinearShape& shape) {
  if (!known(shape.type)) return failure(launcher + ": unknown element type");
  if (shape.activation != Activation::kIdentity && shape.activation != Activation::kRelu &&
      shape.activation != Activation::kGelu) {
    return failure(launcher + ": unknown activation");
  }
  const struct {
    const char* name;
    std::int64_t size;
  } dimensions[] = {{"rows", shape.rows}, {"inputs", shape.inputs}, {"outputs", shape.outputs}};
  for (const auto& dimension : dimensions) {
    if (dimension.size < 1 || dimension.size > kMostElements) {
      return failure(launcher + ": " + std::to_string(dimension.size) + " " + dimension.name +
                     ", allowed are 1 to 2147483647");
    }
  }
  return {};
}

Status check_aligned(const std::string& launcher, const LinearShape& shape, const Named& array) {
  if (aligned_to_element(array.address, shape.type)) return {};
  return failure(launcher + ": " + array.name + " is not aligned to its element size");
}

Status check_array(const std::string& launcher, const LinearShape& shape, const Named& array) {
  if (array.address == nullptr) {
    return failure(launcher + ": " + array.name + " is a null pointer");
  }
  return check_aligned(launcher, shape, array);
}

Status check_aux(const std::string& launcher, const LinearShape& shape, const void* aux) {
  if (aux != nullptr && shape.activation == Activation::kIdentity) {
    return failure(launcher + ": aux is given, but there is no activation");
  }
  if (reinterpret_cast<std::uintptr_t>(aux) % kAuxAlignment != 0) {
    return failure(launcher + ": aux is not aligned to 16 bytes");
  }
  return {};
}

Status check_all(const std::string& launcher, const LinearShape& shape,
                 std::initializer_list<Named> arrays, const GemmWorkspace& workspace) {
  if (auto status = check_shape(launcher, shape); !status.ok()) return status;
  for (const auto& array : arrays) {
    if (auto status = check_array(launcher, shape, array); !status.ok()) return status;
  }
  if (workspace.bytes == 0) return {};
  return check_workspace(launcher, workspace.memory, workspace.bytes, 0);
}

}  // namespace

Status check_linear_forward(const LinearShape& shape, const LinearForward& arrays,
                            const GemmWorkspace& workspace) {
  const std::string launcher = "linear_forward";
  if (auto status = check_all(launcher, shape,
                              {{"x", arrays.x}, {"w", arrays.w}, {"b", arrays.b}, {"y", arrays.y}},
                              workspace);
      !status.ok()) {
    return status;
  }
  return check_aux(launcher, shape, arrays.aux);
}

Status check_linear_input_gradient(const LinearShape& shape, const LinearInputGradient& arrays,
                                   const GemmWorkspace& workspace) {
  const std::string launcher = "linear_input_gradient";
  if (auto status = check_all(launcher, shape,
                              {{"dy", arrays.dy}, {"w", arrays.w}, {"dz", arrays.dz}}, workspace);
      !status.ok()) {
    return status;
  }
  const bool activated = shape.activation != Activation::kIdentity;
  if (activated && arrays.aux == nullptr) return failure(launcher + ": aux is a null pointer");
  if (!activated && arrays.db != nullptr) {
    return failure(launcher +
                   ": db is given, but there is no activation (linear_weight_gradient "
                   "of the layer before computes it)");
  }
  if (auto status = check_aux(launcher, shape, arrays.aux); !status.ok()) return status;
  return check_aligned(launcher, shape, {"db", arrays.db});
}

Status check_linear_weight_gradient(const LinearShape& shape, const LinearWeightGradient& arrays,
                                    const GemmWorkspace& workspace) {
  const std::string launcher = "linear_weight_gradient";
  if (auto status = check_all(launcher, shape,
                              {{"dy", arrays.dy}, {"x", arrays.x}, {"dw", arrays.dw}}, workspace);
      !status.ok()) {
    return status;
  }
  return check_aligned(launcher, shape, {"db", arrays.db});
}

}  // namespace syncline::kernels
