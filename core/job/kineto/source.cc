#include "core/job/kineto/source.h"

#include <zlib.h>

#include "core/error.h"

namespace syncline::job::kineto {

Source::Source(std::string path) : path_(std::move(path)), file_(gzopen(path_.c_str(), "rb")) {
  if (file_ == nullptr) throw InputError(path_ + ": cannot be opened");
  constexpr unsigned kPacked = 1U << 18;
  gzbuffer(file_, kPacked);
}

Source::~Source() { gzclose(file_); }

std::size_t Source::read(char* to, std::size_t room) {
  const int count = gzread(file_, to, static_cast<unsigned>(room));
  int status = Z_OK;
  if (count <= 0) gzerror(file_, &status);
  // Z_BUF_ERROR at the end: the file ends in the midst of what was packed.
  if (count < 0 || status != Z_OK) {
    throw InputError(path_ + (status == Z_BUF_ERROR ? ": gzip: cut off" : ": gzip: damaged"));
  }
  return static_cast<std::size_t>(count);
}

}  // namespace syncline::job::kineto
