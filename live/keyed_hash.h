// What ranks prove to each other that they know one secret with: HMAC-SHA256 (RFC 2104), from
// OpenSSL.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace syncline::live {

class KeyedHash {
 public:
  static constexpr std::size_t kBytes = 32;

  // Throws MachineError where the library cannot.
  explicit KeyedHash(const std::string& key);
  // Of the parts one behind the other.
  std::string of(std::string_view first, std::string_view second = {}) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Bytes that nobody can guess. Throws MachineError.
std::string random_bytes(std::size_t count);

// Takes as long wherever they differ.
bool same_bytes(std::string_view one, std::string_view other);

}  // namespace syncline::live
