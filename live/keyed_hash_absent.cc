// In place of keyed_hash.cc where a program is built without OpenSSL, which is the check of
// backend_nccl alone (a GPU machine that has no packages, ranks of one machine): a checksum. It
// finds what is mixed up and keeps no stranger out.
#include <sys/random.h>

#include <cstdint>
#include <cstring>

#include "core/error.h"
#include "live/seal.h"

namespace syncline::live {

struct KeyedHash::State {
  std::string key;
};

KeyedHash::KeyedHash(const std::string& key) : state_(std::make_shared<State>(State{key})) {}

std::string KeyedHash::of(std::string_view first, std::string_view second) const {
  std::uint64_t sum = 0xcbf29ce484222325ULL;  // FNV-1a
  for (const std::string_view part : {std::string_view(state_->key), first, second}) {
    for (const char byte : part) sum = (sum ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  }
  std::string hash(kBytes, '\0');
  std::memcpy(hash.data(), &sum, sizeof sum);
  return hash;
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  if (getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count)) {
    throw MachineError("getrandom failed");
  }
  return bytes;
}

bool same_bytes(std::string_view one, std::string_view other) { return one == other; }

}  // namespace syncline::live
