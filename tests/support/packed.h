// Text packed as gzip does.
#pragma once

#include <zlib.h>

#include <stdexcept>
#include <string>

namespace syncline::test {

inline void write_packed(const std::string& path, const std::string& text) {
  const gzFile file = gzopen(path.c_str(), "wb");
  if (file == nullptr) throw std::runtime_error(path);
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
}

}  // namespace syncline::test
