// Replaces a header that Debian's libgloo-dev omits and its pair.h includes: two wrappers of
// standard pointers, made and dereferenced only by Gloo.
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
