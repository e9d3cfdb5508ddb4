// A trace's JSON cut into the values that matter, in bounded memory: each event of `traceEvents`
// and each other member of the object around them. Only brackets and strings are looked at; what
// is inside is the reader's.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

struct gzFile_s;

namespace syncline::job::kineto {

// The bytes of a trace, piece by piece: plain, packed by gzip, or several gzip files one after the
// other, as gzip itself reads them.
class Source {
 public:
  // Throws InputError, naming the file, where it cannot be opened.
  explicit Source(std::string path);
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source();

  // Writes up to `room` bytes to `to`; 0 at the end. Throws InputError where packing is damaged or
  // cut off.
  std::size_t read(char* to, std::size_t room);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  gzFile_s* file_;
};

// How many bytes may be read (their values do not matter) behind every slice: simdjson's need.
inline constexpr std::size_t kBehind = 64;

struct Slices {
  // One element of traceEvents. kBehind bytes behind it may be read.
  std::function<void(std::string_view event)> event;
  // Any other member of the object.
  std::function<void(std::string_view key, std::string_view value)> member;
};

// Throws InputError, naming the file, where it is no JSON object or ends too early.
void cut(Source& source, const Slices& slices);

}  // namespace syncline::job::kineto
