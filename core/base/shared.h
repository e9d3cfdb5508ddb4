// A large value that is copied often and seldom edited.
#pragma once

#include <memory>
#include <utility>

namespace syncline {

// Copies share the value until one of them edits it. It cannot be moved, so that it is never empty.
template <typename Value>
class Shared {
 public:
  Shared() : value_(none()) {}
  Shared(Value value) : value_(std::make_shared<Value>(std::move(value))) {}
  Shared(const Shared&) = default;
  Shared& operator=(const Shared&) = default;
  ~Shared() = default;

  const Value& operator*() const { return *value_; }
  const Value* operator->() const { return value_.get(); }
  operator const Value&() const { return *value_; }
  // Returns the value for this copy alone. The reference is valid until this is copied.
  Value& edit() {
    if (value_.use_count() > 1) value_ = std::make_shared<Value>(*value_);
    return *value_;
  }

 private:
  static const std::shared_ptr<Value>& none() {
    static const auto value = std::make_shared<Value>();
    return value;
  }

  std::shared_ptr<Value> value_;
};

}  // namespace syncline
