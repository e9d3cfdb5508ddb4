#include "imports/kineto/trace.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "core/base/error.h"
#include "formats/text/files.h"

namespace syncline::job::kineto {
namespace {

constexpr unsigned kChunk = 1U << 20;
// Real events have a kilobyte, metadata of thousands of ranks a few megabytes.
constexpr std::size_t kLongest = std::size_t{1} << 26;

constexpr std::array<bool, 256> kStructural = [] {
  std::array<bool, 256> marks{};
  for (const char c : {'{', '}', '[', ']', '"'}) marks[static_cast<unsigned char>(c)] = true;
  return marks;
}();

// The part of the file from a value's first byte on. `at`: the place of reading.
class Window {
 public:
  explicit Window(const std::string& path)
      : path_(path), file_(gzdopen(open_to_read(path, "a trace"), "rb"), &gzclose) {
    if (file_ == nullptr) throw std::bad_alloc();
    constexpr unsigned kPacked = 1U << 18;
    gzbuffer(file_.get(), kPacked);
  }

  // Returns false at the end of the file.
  bool ready() {
    while (at == filled_) {
      if (!more()) return false;
    }
    return true;
  }

  // Returns the byte at `at`; reads more of the file before it if needed.
  char byte() {
    if (!ready()) fail("the file ends in the midst of it: cut off");
    return bytes_[at];
  }

  char token() {
    while (std::strchr(" \t\r\n", byte()) != nullptr && byte() != '\0') ++at;
    return byte();
  }

  void expect(char wanted) {
    if (token() != wanted) {
      fail(std::string("no JSON: ") + wanted + " is missing at byte " +
           std::to_string(passed_ + at));
    }
    ++at;
  }

  // Drops the bytes before `at`.
  void drop() { first_ = at; }
  std::string_view kept() const { return {bytes_.data() + first_, at - first_}; }

  // Moves past the closing quote of the string at `at`.
  void pass_string() {
    while (true) {
      byte();  // reads more of the file
      const void* quote = std::memchr(bytes_.data() + at, '"', filled_ - at);
      if (quote == nullptr) {
        at = filled_;
        continue;
      }
      at = static_cast<std::size_t>(static_cast<const char*>(quote) - bytes_.data()) + 1;
      // A quote after an odd number of backslashes is part of the string.
      std::size_t slashes = 0;
      while (slashes + 2 <= at - first_ && bytes_[at - 2 - slashes] == '\\') ++slashes;
      if (slashes % 2 == 0) return;
    }
  }

  // Moves past the value that begins at `at`; kept() is the value then.
  void pass_value() {
    drop();
    const char begin = token();
    drop();
    if (begin == '"') {
      ++at;
      return pass_string();
    }
    if (begin != '{' && begin != '[') return pass_scalar();
    std::size_t depth = 0;
    do {
      byte();  // reads more of the file
      while (at < filled_ && !kStructural[static_cast<unsigned char>(bytes_[at])]) ++at;
      if (at == filled_) continue;
      const char mark = bytes_[at++];
      if (mark == '"') pass_string();
      if (mark == '{' || mark == '[') ++depth;
      if (mark == '}' || mark == ']') --depth;
    } while (depth > 0);
  }

  [[noreturn]] void fail(const std::string& what) const { throw InputError(path_ + ": " + what); }

  std::size_t at = 0;

 private:
  void pass_scalar() {
    while (ready() && std::strchr(",]} \t\r\n", bytes_[at]) == nullptr) ++at;
    if (kept().empty()) {
      fail("no JSON: a value is missing at byte " + std::to_string(passed_ + at));
    }
  }

  bool more() {
    if (filled_ - first_ > kLongest) {
      fail("one value is longer than 64 MiB at byte " + std::to_string(passed_ + first_));
    }
    if (first_ > 0) {
      std::memmove(bytes_.data(), bytes_.data() + first_, filled_ - first_);
      passed_ += first_;
      at -= first_;
      filled_ -= first_;
      first_ = 0;
    }
    bytes_.resize(std::max(bytes_.size(), filled_ + kChunk + kBehind));
    const int count = gzread(file_.get(), bytes_.data() + filled_, kChunk);
    int status = Z_OK;
    if (count <= 0) gzerror(file_.get(), &status);
    // Z_BUF_ERROR at the end: the compressed data are incomplete.
    if (count < 0 || status != Z_OK) {
      fail(status == Z_BUF_ERROR ? "gzip: cut off" : "gzip: damaged");
    }
    filled_ += static_cast<std::size_t>(count);
    return count > 0;
  }

  const std::string& path_;
  std::unique_ptr<gzFile_s, decltype(&gzclose)> file_;
  std::vector<char> bytes_;
  std::size_t first_ = 0;   // start of the kept bytes
  std::size_t filled_ = 0;  // end of the bytes read from the source
  std::size_t passed_ = 0;  // bytes of the file before bytes_
};

// Moves to the next element of an array or object; false: there is none. Accepts a comma before the
// end, as Paddle and older torches write one.
bool next_element(Window& window, char close, bool first) {
  if (!first && window.token() == ',') ++window.at;
  if (window.token() != close) return true;
  ++window.at;
  return false;
}

void cut_events(Window& window, const Slices& slices) {
  if (window.token() != '[') window.fail("traceEvents is no list");
  ++window.at;
  for (bool first = true; next_element(window, ']', first); first = false) {
    window.pass_value();
    slices.event(window.kept());
    window.drop();
  }
}

}  // namespace

void cut(const std::string& path, const Slices& slices) {
  Window window(path);
  if (!window.ready()) window.fail("empty");
  if (window.token() == '[') {
    window.fail(
        "a bare list of events, as a torch without Kineto writes it: it knows no kernels; "
        "record with torch.profiler, or with `syncline record`");
  }
  window.expect('{');
  for (bool first = true; next_element(window, '}', first); first = false) {
    if (window.token() != '"') window.expect('"');
    window.pass_value();
    const std::string key(window.kept().substr(1, window.kept().size() - 2));
    window.expect(':');
    if (key == "traceEvents") {
      cut_events(window, slices);
    } else {
      window.pass_value();
      slices.member(key, window.kept());
      window.drop();
    }
  }
}

}  // namespace syncline::job::kineto
