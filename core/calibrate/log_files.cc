#include "core/calibrate/log_files.h"

#include <zlib.h>
#include <array>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "core/calibrate/inspector/inspector.h"
#include "core/calibrate/nccl_log_parts.h"
#include "core/error.h"
#include "core/input/document.h"
#include "core/json/text.h"

namespace syncline::calibrate {
namespace {

// FILE, FILE@10x2 (the counts of nodes and GPUs a node of all tables in it), FILE:ring (what NCCL
// was forced to), FILE@10x2:ring.
struct LogFile {
  std::string path;
  cost::ForcedAlgorithm forced = cost::ForcedAlgorithm::kNone;
  int nodes = 0;
  int gpus_per_node = 0;
};

const std::map<std::string, cost::ForcedAlgorithm> kAlgorithms = {
    {"nccl", cost::ForcedAlgorithm::kNone},
    {"ring", cost::ForcedAlgorithm::kRing},
    {"tree", cost::ForcedAlgorithm::kTree}};

LogFile log_file(std::string argument, const std::string& algorithm) {
  cost::ForcedAlgorithm forced = kAlgorithms.at(algorithm);
  for (const auto& [name, value] : kAlgorithms) {
    const std::string ending = ":" + name;
    if (argument.size() <= ending.size() || !argument.ends_with(ending)) continue;
    argument.resize(argument.size() - ending.size());
    forced = value;
    break;
  }
  const auto at = argument.rfind('@');
  if (at == std::string::npos) return {argument, forced, 0, 0};
  const std::string_view shape = std::string_view(argument).substr(at + 1);
  const auto cross = shape.find('x');
  LogFile file{argument.substr(0, at), forced, 0, 0};
  if (cross != std::string_view::npos) {
    file.nodes = number_of<int>(shape.substr(0, cross)).value_or(0);
    file.gpus_per_node = number_of<int>(shape.substr(cross + 1)).value_or(0);
  }
  if (file.nodes <= 0 || file.gpus_per_node <= 0) {
    std::error_code unknown;
    if (!std::filesystem::exists(argument, unknown) &&
        std::filesystem::exists(argument.substr(0, at), unknown)) {
      throw InputError(argument + ": expected " + argument.substr(0, at) +
                       "@NODESxGPUS, e.g. @2x8");
    }
    // A name may hold the sign itself.
    return {argument, forced, 0, 0};
  }
  return file;
}

std::vector<cost::MeasuredTable> read_log(const std::string& path) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path, error);
  return folder || is_inspector_log(path) ? read_inspector_log(path) : read_nccl_log(path);
}

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
  return bytes.starts_with("\x1f\x8b") ? inflate_all(path, bytes) : bytes;
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
    problem = "contains no table of nccl-tests";
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

std::vector<cost::MeasuredTable> tables_in(const std::vector<std::string>& names,
                                           const std::string& algorithm) {
  std::vector<cost::MeasuredTable> tables;
  for (const auto& argument : names) {
    const LogFile file = log_file(argument, algorithm);
    bool any = false;
    std::string seen;
    for (cost::MeasuredTable& table : read_log(file.path)) {
      seen += (seen.empty() ? "" : ", ") + (table.test.empty() ? "unknown" : table.test);
      // What a plan never asks for is not calibrated: alltoall, sendrecv, gather.
      if (!table.kind) continue;
      if (file.nodes > 0) cost::set_shape(table, file.nodes, file.gpus_per_node);
      const std::string place = file.path + ": line " + std::to_string(table.line) + ": ";
      if (table.nodes == 0 || table.gpus_per_node == 0) {
        throw InputError(place + "the log does not say on how many nodes" +
                         (table.ranks > 0 ? " its " + std::to_string(table.ranks) + " ranks were"
                                          : " and GPUs it ran") +
                         "; append them to the name: " + file.path + "@NODESxGPUS, e.g. @2x8");
      }
      if (table.nodes * table.gpus_per_node < 2) {
        throw InputError(place + "one rank has nothing to communicate");
      }
      table.forced = file.forced;
      if (file.forced == cost::ForcedAlgorithm::kTree &&
          table.kind != collective::CollectiveKind::kAllReduce) {
        throw InputError(place + "algorithm tree: NCCL has it for all_reduce only, found " +
                         table.test);
      }
      any = true;
      tables.push_back(std::move(table));
    }
    if (!any) {
      throw InputError(file.path +
                       ": expected all_reduce, all_gather, reduce_scatter, broadcast or reduce, "
                       "found " +
                       seen);
    }
  }
  return tables;
}

}  // namespace syncline::calibrate
