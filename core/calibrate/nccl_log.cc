#include "core/calibrate/nccl_log.h"

#include <zlib.h>

#include <array>
#include <filesystem>
#include <map>
#include <string_view>

#include "core/calibrate/nccl_log_parts.h"
#include "core/error.h"
#include "core/input/document.h"
#include "core/json/text.h"

namespace syncline::calibrate {
namespace {

// Sizes that stand in a table several times: whoever fits takes the median of their times.
void say_repeats(cost::MeasuredTable& table) {
  std::map<Bytes, int> times;
  for (const cost::MeasuredRow& row : table.rows) {
    if (row.size > 0) ++times[row.size];
  }
  std::erase_if(times, [](const auto& one) { return one.second < 2; });
  if (times.empty()) return;
  const auto& [size, count] = *times.begin();
  table.left_out.push_back(
      std::to_string(times.size()) + (times.size() == 1 ? " size stands" : " sizes stand") +
      " in the table of line " + std::to_string(table.line) + " more than once (" +
      std::to_string(size) + " bytes: " + std::to_string(count) +
      " times): the median of their times is used");
}

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

std::vector<cost::MeasuredTable> read_nccl_log(const std::string& path) {
  return nccl_log_from_text(path, unpacked(path, read_text_file(path, "an nccl-tests log")));
}

std::vector<cost::MeasuredTable> nccl_log_from_text(const std::string& name,
                                                    std::string_view text) {
  std::string problem;
  std::vector<RawTable> raws;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    raws = nccl_json_tables(text, problem);
  } else {
    raws = nccl_text_tables(text);
    problem = "holds no table of nccl-tests";
  }
  std::vector<cost::MeasuredTable> tables;
  const std::string file_name = std::filesystem::path(name).filename().string();
  for (RawTable& raw : raws) {
    if (raw.table.rows.empty()) continue;
    raw.table.source = name;
    settle_shape(raw, file_name);
    if (!raw.context.devices.empty()) raw.table.device = raw.context.devices.front().name;
    say_repeats(raw.table);
    tables.push_back(std::move(raw.table));
  }
  if (tables.empty()) {
    throw InputError(name + ": " + problem +
                     "; looked for rows of size, count and type (\"1048576  262144  float ...\") "
                     "with time, algbw and busbw, as nccl-tests prints them, or its JSON (-J)");
  }
  return tables;
}

}  // namespace syncline::calibrate
