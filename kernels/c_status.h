// A Status for C: the number that a function of the C interface returns, its text kept for
// syncline_last_error().
#pragma once

#include <string>

#include "kernels/status.h"

namespace syncline::kernels {

inline std::string& last_error_text() {
  static thread_local std::string text;
  return text;
}

inline int c_status(const Status& status) {
  last_error_text() = status.text;
  return status.ok() ? 0 : 1;
}

}  // namespace syncline::kernels
