#include "core/job/dtype.h"

namespace syncline {

Bytes size_of(DType dtype) {
  switch (dtype) {
    case DType::kFp64:
      return 8;
    case DType::kFp32:
      return 4;
    case DType::kFp16:
    case DType::kBf16:
      return 2;
  }
  return 4;
}

std::string to_string(DType dtype) {
  switch (dtype) {
    case DType::kFp64:
      return "fp64";
    case DType::kFp32:
      return "fp32";
    case DType::kFp16:
      return "fp16";
    case DType::kBf16:
      return "bf16";
  }
  return "fp32";
}

}  // namespace syncline
