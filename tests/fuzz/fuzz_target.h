// One reader that is given any bytes at all: it reads them or throws an InputError, never worse.
//   SYNCLINE_FUZZ_TARGET(journal, bytes) { ...; }
// Linked with libFuzzer (cmake -DSYNCLINE_FUZZ=ON) the target is a fuzzer of its own. Elsewhere it
// is listed, and corpus_test.cc gives it every file of its corpus, with any compiler.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace syncline::fuzz {

struct Target {
  std::string_view name;
  void (*read)(const std::string& bytes);
};

inline std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

inline bool listed(std::string_view name, void (*read)(const std::string&)) {
  targets().push_back({name, read});
  return true;
}

// A file in memory that holds these bytes, for readers that want a path. The next call takes it
// away.
inline std::string path_of(const std::string& bytes) {
  static int file = -1;
  if (file >= 0) close(file);
  file = memfd_create("fuzzed", 0);
  const auto size = static_cast<ssize_t>(bytes.size());
  if (file < 0 || pwrite(file, bytes.data(), bytes.size(), 0) != size) std::abort();
  return "/proc/self/fd/" + std::to_string(file);
}

}  // namespace syncline::fuzz

#ifdef SYNCLINE_LIBFUZZER
#define SYNCLINE_FUZZ_TARGET(name, bytes)                                             \
  static void read_##name(const std::string& bytes);                                  \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);  \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    try {                                                                             \
      read_##name(std::string(reinterpret_cast<const char*>(data), size));            \
    } catch (const syncline::InputError&) {                                           \
    }                                                                                 \
    return 0;                                                                         \
  }                                                                                   \
  static void read_##name(const std::string& bytes)
#else
#define SYNCLINE_FUZZ_TARGET(name, bytes)                                                        \
  static void read_##name(const std::string& bytes);                                             \
  [[maybe_unused]] static const bool listed_##name = syncline::fuzz::listed(#name, read_##name); \
  static void read_##name(const std::string& bytes)
#endif
