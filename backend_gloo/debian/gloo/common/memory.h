// Debian's libgloo-dev leaves this header out, which its pair.h includes. What pair.h needs of it:
// two boxes around standard pointers, which Gloo alone makes and follows.
#pragma once

#include <memory>

namespace gloo {

template <typename T>
class NonOwningPtr {
  std::shared_ptr<T> pointer_;
};

template <typename T>
class WeakNonOwningPtr {
  std::weak_ptr<T> pointer_;
};

}  // namespace gloo
