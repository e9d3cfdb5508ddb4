// A workspace: one piece of memory that holds a plan's tables, handed out part after part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/host_device.h"

namespace syncline::kernels {

constexpr std::size_t kWorkspaceAlignment = 256;

// Every part is aligned to 256 bytes. Without memory (base is null) it only counts.
class WorkspaceParts {
 public:
  explicit WorkspaceParts(void* base) : base_(static_cast<std::byte*>(base)) {}

  template <typename T>
  void next(T** part, std::int64_t count) {
    if (base_) *part = reinterpret_cast<T*>(base_ + used_);
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    used_ += (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  }

  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

inline Status check_workspace(const std::string& launcher, const void* workspace, std::size_t given,
                              std::size_t needed) {
  if (!workspace) return failure(launcher + ": workspace is null");
  if (reinterpret_cast<std::uintptr_t>(workspace) % kWorkspaceAlignment != 0) {
    return failure(launcher + ": workspace is not aligned to 256 bytes");
  }
  if (given < needed) {
    return failure(launcher + ": workspace has " + std::to_string(given) +
                   " bytes, the plan needs " + std::to_string(needed));
  }
  return {};
}

}  // namespace syncline::kernels
