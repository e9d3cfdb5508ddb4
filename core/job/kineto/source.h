// The bytes of a trace, piece by piece: plain, packed by gzip, or several gzip files one after the
// other, as gzip itself reads them.
#pragma once

#include <cstddef>
#include <string>

struct gzFile_s;

namespace syncline::job::kineto {

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

}  // namespace syncline::job::kineto
