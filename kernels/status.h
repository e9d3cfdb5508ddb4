// What a launcher returns. Empty text: the work is in the stream. Otherwise the text names the
// argument that is wrong (then nothing was launched) or the CUDA call that failed, and why.
#pragma once

#include <string>
#include <utility>

namespace syncline::kernels {

struct Status {
  std::string text;

  bool ok() const { return text.empty(); }
};

inline Status failure(std::string text) { return {std::move(text)}; }

}  // namespace syncline::kernels
