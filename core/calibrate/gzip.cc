#include "core/calibrate/gzip.h"

#include <zlib.h>

#include <array>
#include <string_view>

#include "core/error.h"

namespace syncline::calibrate {
namespace {

constexpr std::size_t kMostUnpacked = std::size_t{1} << 30;

// Files packed one after the other are one text, as for gzip itself.
std::string inflate_all(const std::string& path, std::string& bytes) {
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;  // expect gzip's head
  if (inflateInit2(&stream, kGzip) != Z_OK) throw InputError(path + ": gzip: no memory");
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  std::array<char, 1 << 16> part{};
  int status = Z_OK;
  while (status == Z_OK && text.size() < kMostUnpacked) {
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = part.size();
    status = inflate(&stream, Z_NO_FLUSH);
    text.append(part.data(), part.size() - stream.avail_out);
    if (status == Z_STREAM_END && stream.avail_in > 0) status = inflateReset(&stream);
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END) {
    throw InputError(
        path + ": gzip: " + (status == Z_OK ? "more than 1 GiB unpacked" : "damaged or cut off"));
  }
  return text;
}

}  // namespace

std::string unpacked(const std::string& path, std::string bytes) {
  constexpr std::string_view kMagic = "\x1f\x8b";
  if (!bytes.starts_with(kMagic)) return bytes;
  return inflate_all(path, bytes);
}

}  // namespace syncline::calibrate
