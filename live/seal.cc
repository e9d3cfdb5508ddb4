#include "live/seal.h"

#include <cstring>

#include "live/connection.h"

namespace syncline::live {

std::string new_token() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : random_bytes(32)) {
    const auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4U];
    text += kDigits[value & 15U];
  }
  return text;
}

// What is hashed begins with what it is for, and says where each part ends.
std::string proof_of(const std::string& token, const Introduction& who,
                     const std::string& nonce_of_called, const std::string& nonce_of_caller) {
  return KeyedHash(token).of(
      joined({"proof", nonce_of_called, nonce_of_caller, std::to_string(who.rank),
              std::to_string(who.ranks), who.key}));
}

std::string session_key(const std::string& token, const std::string& nonce_of_called,
                        const std::string& nonce_of_caller) {
  return KeyedHash(token).of(joined({"session", nonce_of_called, nonce_of_caller}));
}

std::string Seal::next(std::string_view frame) {
  std::string place(1 + sizeof number_, static_cast<char>(way_));
  std::memcpy(place.data() + 1, &number_, sizeof number_);
  ++number_;
  return hash_.of(place, frame);
}

}  // namespace syncline::live
