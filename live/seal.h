// The token of a run and what is made of it. All ranks of a run know its token, nobody else does; a
// frame between two of them bears a seal, which shows that it comes from the other one, on this
// connection, in this order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace syncline::live {

// What ranks prove to each other that they know one secret with: HMAC-SHA256 (RFC 2104), from
// OpenSSL.
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

// 256 random bits as 64 hexadecimal digits.
std::string new_token();

// What a rank says of itself to the one that it has called, and how it proves that it is of the
// run. Each side brings a nonce, so that nothing that was said once is worth anything again.
struct Introduction {
  int rank = 0;
  int ranks = 0;
  std::string key;  // what all ranks must have been started with alike
};

inline constexpr std::size_t kNonceBytes = 32;

std::string proof_of(const std::string& token, const Introduction& who,
                     const std::string& nonce_of_called, const std::string& nonce_of_caller);
// The key of one connection's seals.
std::string session_key(const std::string& token, const std::string& nonce_of_called,
                        const std::string& nonce_of_caller);

// Seals the frames that go one way over one connection; both ends have one for each way.
class Seal {
 public:
  static constexpr std::size_t kBytes = KeyedHash::kBytes;
  enum class Way : char { kToCalled = 'U', kToCaller = 'D' };

  Seal(const std::string& session_key, Way way) : hash_(session_key), way_(way) {}
  // Of the next frame.
  std::string next(std::string_view frame);

 private:
  KeyedHash hash_;
  Way way_;
  std::uint64_t number_ = 0;
};

}  // namespace syncline::live
