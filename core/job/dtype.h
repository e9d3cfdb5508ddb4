// Number formats of tensors.
#pragma once

#include <string>

#include "core/base/units.h"

namespace syncline {

enum class DType { kFp32, kFp16, kBf16, kFp64 };

Bytes size_of(DType dtype);
std::string to_string(DType dtype);

}  // namespace syncline
