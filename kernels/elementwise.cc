#include "kernels/elementwise.h"

#include <string>

#include "kernels/elementwise_tile.h"

namespace syncline::kernels {
namespace {

Status check_array(const char* name, const void* address, const AddActivation& inputs) {
  const std::string which = std::string("add_activation: ") + name;
  if (inputs.elements > 0 && address == nullptr) return failure(which + " is a null pointer");
  if (!aligned_to_element(address, inputs.type)) {
    return failure(which + " is not aligned to its element size");
  }
  return {};
}

}  // namespace

Status check_add_activation(const AddActivation& inputs, const void* y) {
  if (!known(inputs.type)) return failure("add_activation: unknown element type");
  if (inputs.activation != Activation::kIdentity && inputs.activation != Activation::kRelu &&
      inputs.activation != Activation::kGelu) {
    return failure("add_activation: unknown activation");
  }
  if (inputs.elements < 0) {
    return failure("add_activation: " + std::to_string(inputs.elements) + " elements");
  }
  if (auto status = check_array("a", inputs.a, inputs); !status.ok()) return status;
  if (inputs.b != nullptr) {
    if (auto status = check_array("b", inputs.b, inputs); !status.ok()) return status;
  }
  return check_array("the output", y, inputs);
}

Status check_add_activation_gradient(const AddActivation& inputs, const void* dy, const void* dz) {
  if (auto status = check_add_activation(inputs, dz); !status.ok()) return status;
  return check_array("dy", dy, inputs);
}

}  // namespace syncline::kernels
