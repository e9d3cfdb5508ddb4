// Ten seconds of each target in every build: its corpus, changed by chance. No coverage models it
// as in `make fuzz`, but neither is clang asked for, and a plain build tries many more a second.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/json_mutator.h"
#include "tests/support/corpus.h"

namespace syncline::fuzz {
namespace {

constexpr std::size_t kMaxBytes = 16384;

// One change of bytes: a bit, a byte, a digit, a piece away, twice, or from another file.
std::string changed_bytes(std::string bytes, const std::string& other, std::mt19937& random) {
  const auto any = [&](std::size_t below) { return below == 0 ? 0 : random() % below; };
  const std::size_t at = any(bytes.size());
  const std::size_t length = 1 + any(std::min<std::size_t>(bytes.size() - at, 32));
  constexpr char kTelling[] = "\0\n\r\t \"\\,:;[]{}0-.eE\x1b\x7f\x80\xff";
  switch (any(6)) {
    case 0:
      if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << any(8)));
      break;
    case 1:
      bytes.insert(at, 1, kTelling[any(std::size(kTelling))]);
      break;
    case 2:
      if (const auto digit = bytes.find_first_of("0123456789", at); digit != std::string::npos) {
        bytes.insert(digit, std::string(1 + any(20), static_cast<char>('0' + any(10))));
      }
      break;
    case 3:
      bytes.erase(at, length);
      break;
    case 4:
      bytes.insert(any(bytes.size()), bytes.substr(at, length));
      break;
    default:
      bytes.insert(at, other.substr(any(other.size()), 1 + any(64)));
  }
  return bytes.substr(0, kMaxBytes);
}

// What is being read lies in a file that the kernel keeps up: it is there after a crash too.
class LastInput {
 public:
  explicit LastInput(std::string_view target)
      : path_((std::filesystem::temp_directory_path() / "syncline-fuzz-").string() +
              std::string(target) + "-XXXXXX") {
    const int file = ::mkstemp(path_.data());
    if (file < 0 || ::ftruncate(file, sizeof(Kept)) != 0) throw std::runtime_error(path_);
    void* mapped = ::mmap(nullptr, sizeof(Kept), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (mapped == MAP_FAILED) throw std::runtime_error(path_);
    kept_ = static_cast<Kept*>(mapped);
  }
  LastInput(const LastInput&) = delete;
  LastInput& operator=(const LastInput&) = delete;
  ~LastInput() {
    ::munmap(kept_, sizeof(Kept));
    std::filesystem::remove(path_);
  }
  const std::string& path() const { return path_; }
  void is(const std::string& bytes) {
    std::snprintf(kept_->size, sizeof kept_->size, "%zu bytes follow this line", bytes.size());
    kept_->size[sizeof kept_->size - 1] = '\n';
    std::memcpy(kept_->bytes, bytes.data(), bytes.size());
  }

 private:
  struct Kept {
    char size[64];
    char bytes[kMaxBytes];
  };
  std::string path_;
  Kept* kept_;
};

class FuzzSeconds : public ::testing::TestWithParam<Target> {};

TEST_P(FuzzSeconds, ChangedFilesAreReadOrRefused) {
  const Target target = GetParam();
  const char* given = std::getenv("SYNCLINE_FUZZ_S");
  const std::chrono::duration<double> seconds(given != nullptr ? std::atof(given) : 10);
  const auto corpus = test::corpus_of(std::string(target.name));
  LastInput last(target.name);
  std::printf("the input at hand: %s\n", last.path().c_str());
  std::fflush(stdout);
  std::mt19937 random(1);
  long runs = 0;
  long read = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < seconds) {
    std::string bytes = corpus[random() % corpus.size()];
    const std::string& other = corpus[random() % corpus.size()];
    const bool syntax_stays = random() % 8 != 0;
    if (const auto json = changed_json(bytes, random); syntax_stays && json) {
      bytes = *json;
    } else {
      for (auto changes = random() % 4; changes > 0; --changes) {
        bytes = changed_bytes(std::move(bytes), other, random);
      }
    }
    bytes.resize(std::min(bytes.size(), kMaxBytes));
    last.is(bytes);
    ++runs;
    try {
      target.read(bytes);
      ++read;
    } catch (const InputError&) {
    }
  }
  std::printf("%ld runs, %ld read, the others refused\n", runs, read);
  EXPECT_GT(read, 0);
}

INSTANTIATE_TEST_SUITE_P(EachTarget, FuzzSeconds, ::testing::ValuesIn(targets()),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace syncline::fuzz
