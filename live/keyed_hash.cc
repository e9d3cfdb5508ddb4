#include "live/seal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include "core/error.h"

namespace syncline::live {
namespace {

void check(bool done, const char* call) {
  if (!done) throw MachineError(std::string("OpenSSL: ") + call + " failed");
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

}  // namespace

struct KeyedHash::State {
  std::unique_ptr<EVP_MAC, void (*)(EVP_MAC*)> kind{EVP_MAC_fetch(nullptr, "HMAC", nullptr),
                                                    EVP_MAC_free};
  std::unique_ptr<EVP_MAC_CTX, void (*)(EVP_MAC_CTX*)> work{EVP_MAC_CTX_new(kind.get()),
                                                            EVP_MAC_CTX_free};
};

KeyedHash::KeyedHash(const std::string& key) : state_(std::make_shared<State>()) {
  check(state_->work != nullptr, "EVP_MAC_CTX_new");
  char digest[] = "SHA256";
  const OSSL_PARAM how[] = {OSSL_PARAM_construct_utf8_string("digest", digest, 0),
                            OSSL_PARAM_construct_end()};
  check(EVP_MAC_init(state_->work.get(), bytes_of(key), key.size(), how) == 1, "EVP_MAC_init");
}

std::string KeyedHash::of(std::string_view first, std::string_view second) const {
  EVP_MAC_CTX* work = state_->work.get();
  std::string hash(kBytes, '\0');
  std::size_t length = 0;
  check(EVP_MAC_init(work, nullptr, 0, nullptr) == 1, "EVP_MAC_init");
  check(EVP_MAC_update(work, bytes_of(first), first.size()) == 1, "EVP_MAC_update");
  check(EVP_MAC_update(work, bytes_of(second), second.size()) == 1, "EVP_MAC_update");
  check(EVP_MAC_final(work, bytes_of(hash), &length, hash.size()) == 1 && length == kBytes,
        "EVP_MAC_final");
  return hash;
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  check(RAND_bytes(bytes_of(bytes), static_cast<int>(count)) == 1, "RAND_bytes");
  return bytes;
}

bool same_bytes(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace syncline::live
