#include "studies/calibrate/log_files.h"

#include <zlib.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "formats/input/document.h"
#include "formats/json/text.h"
#include "formats/nccl_log/nccl_log_parts.h"
#include "formats/text/visible.h"
#include "studies/calibrate/inspector/inspector.h"

namespace syncline::calibrate {
namespace {

// FILE, FILE@10x2 (counts of nodes and GPUs per node of all tables in it), FILE:ring (algorithm
// that NCCL was forced to), FILE:half (rows of that type), FILE@10x2:ring:half.
struct LogFile {
  std::string path;
  std::optional<cost::ForcedAlgorithm> forced;  // nullopt: not given
  std::string type;                             // empty: not given
  int nodes = 0;
  int gpus_per_node = 0;
};

const std::map<std::string, cost::ForcedAlgorithm> kAlgorithms = {
    {"nccl", cost::ForcedAlgorithm::kNone},
    {"ring", cost::ForcedAlgorithm::kRing},
    {"tree", cost::ForcedAlgorithm::kTree}};

// Takes an ending that selects algorithm or type off the log's name.
bool take_ending(std::string& argument, LogFile& file) {
  const std::size_t colon = argument.rfind(':');
  if (colon == std::string::npos || colon == 0) return false;
  const std::string word = argument.substr(colon + 1);
  const auto algorithm = kAlgorithms.find(word);
  if (algorithm != kAlgorithms.end()) {
    file.forced = algorithm->second;
  } else if (nccl_type_size(word) > 0) {
    file.type = word;
  } else {
    return false;
  }
  argument.resize(colon);
  return true;
}

// Reads an argument such as "FILE@2x8:ring".
LogFile log_file(std::string argument) {
  LogFile file;
  while (take_ending(argument, file)) {
  }
  file.path = argument;
  const auto at = argument.rfind('@');
  if (at == std::string::npos) return file;
  const std::string_view shape = std::string_view(argument).substr(at + 1);
  const auto cross = shape.find('x');
  if (cross != std::string_view::npos) {
    file.nodes = number_of<int>(shape.substr(0, cross)).value_or(0);
    file.gpus_per_node = number_of<int>(shape.substr(cross + 1)).value_or(0);
  }
  if (file.nodes > 0 && file.gpus_per_node > 0) {
    file.path = argument.substr(0, at);
    return file;
  }
  file.nodes = file.gpus_per_node = 0;
  std::error_code unknown;
  if (!std::filesystem::exists(argument, unknown) &&
      std::filesystem::exists(argument.substr(0, at), unknown)) {
    throw InputError(argument + ": expected " + argument.substr(0, at) + "@NODESxGPUS, e.g. @2x8");
  }
  // A name may contain the sign itself.
  return file;
}

std::vector<cost::MeasuredTable> read_log(const std::string& path) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path, error);
  return folder || is_inspector_log(path) ? read_inspector_log(path) : read_nccl_log(path);
}

// Notes the sizes that occur several times in a table: a fit takes the median of their times.
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

// Takes the nodes of the table before for one of as many ranks that says none.
void inherit_nodes(const std::vector<cost::MeasuredTable>& before, cost::MeasuredTable& table) {
  if (before.empty() || table.nodes > 0 || table.ranks < 1) return;
  const cost::MeasuredTable& last = before.back();
  if (last.ranks != table.ranks || last.nodes < 1 || last.gpus_per_node < 1) return;
  table.nodes = last.nodes;
  table.gpus_per_node = last.gpus_per_node;
  table.notes.push_back("on " + std::to_string(table.nodes) +
                        (table.nodes == 1 ? " node" : " nodes") +
                        " as the table before, which is of as many ranks");
}

constexpr std::size_t kMaxUnpackedBytes = std::size_t{1} << 30;

// Unpacks gzip data. Concatenated files are one text, as for gzip itself.
std::string inflate_all(const std::string& path, std::string& bytes) {
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;  // expect gzip's header
  if (inflateInit2(&stream, kGzip) != Z_OK) throw InputError(path + ": gzip: no memory");
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  std::array<char, 1 << 16> part{};
  int status = Z_OK;
  while (status == Z_OK && text.size() < kMaxUnpackedBytes) {
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

std::string place_of(const cost::MeasuredTable& table) {
  return table.source + ": line " + std::to_string(table.line) + ": ";
}

// Sets the algorithm that NCCL was forced to: from the file's name, else from the log, else
// `otherwise`.
void choose_forced(const LogFile& file, cost::ForcedAlgorithm otherwise,
                   cost::MeasuredTable& table) {
  const auto set = table.settings.find("NCCL_ALGO");
  const bool stated = set != table.settings.end();
  if (file.forced) {
    const bool other =
        stated && *file.forced != cost::ForcedAlgorithm::kNone &&
        (!table.other_algorithm.empty() ||
         (table.forced != cost::ForcedAlgorithm::kNone && table.forced != *file.forced));
    if (other) {
      throw InputError(place_of(table) + "the log says NCCL_ALGO=" + set->second +
                       ", its name here another algorithm: leave that out");
    }
    table.forced = *file.forced;
    return;
  }
  if (!table.other_algorithm.empty()) {
    throw InputError(place_of(table) + "it ran with NCCL_ALGO=" + table.other_algorithm +
                     ", which no strategy can ask for; if NCCL takes that by itself in your jobs, "
                     "say so: " +
                     file.path + ":nccl");
  }
  if (!stated) table.forced = otherwise;
}

// Throws InputError for a table that cannot be fitted.
void check_table(const LogFile& file, const cost::MeasuredTable& table) {
  const std::string place = place_of(table);
  if (table.mixed) {
    throw InputError(place +
                     "its rows are of different numbers of ranks (busbw / algbw differs from row "
                     "to row): give each run by itself");
  }
  if (table.nodes == 0 || table.gpus_per_node == 0) {
    throw InputError(place + "the log does not say on how many nodes" +
                     (table.ranks > 0 ? " its " + std::to_string(table.ranks) + " ranks were"
                                      : " and GPUs it ran") +
                     "; append them to the name: " + file.path + "@NODESxGPUS, e.g. @2x8");
  }
  if (table.nodes * table.gpus_per_node < 2) {
    const auto worlds = std::ranges::find_if(
        table.notes, [](const auto& note) { return note.starts_with("more than one process"); });
    throw InputError(
        place + (worlds == table.notes.end() ? "one rank has nothing to communicate" : *worlds));
  }
  if (table.forced == cost::ForcedAlgorithm::kTree &&
      table.kind != collective::CollectiveKind::kAllReduce) {
    throw InputError(place + "algorithm tree: NCCL has it for all_reduce only, found " +
                     table.test);
  }
}

// Notes that the sizes of a table are too small for a rate.
void say_small(cost::MeasuredTable& table) {
  constexpr Bytes kLeast = 64 << 10;
  Bytes largest = 0;
  for (const cost::MeasuredRow& row : table.rows) largest = std::max(largest, row.size);
  if (largest >= kLeast) return;
  table.notes.push_back("its largest size is " + std::to_string(largest) +
                        " bytes, which shows latencies and no rate: gradients are larger, run it "
                        "up to -e 1G");
}

bool has_times(const cost::MeasuredTable& table) {
  return !cost::usable_points(table, cost::Place::kOutOfPlace).empty() ||
         !cost::usable_points(table, cost::Place::kInPlace).empty();
}

// Returns the rate that the largest row of an alltoall or sendrecv shows: out of each node, or of a
// GPU inside one. In both each rank sends; sendrecv's go to the next rank alone.
std::string rate_shown(const cost::MeasuredTable& table) {
  const auto points = cost::usable_points(table, cost::Place::kOutOfPlace);
  if (points.empty() || table.nodes < 1 || table.gpus_per_node < 1) return "";
  const double ranks = table.nodes * table.gpus_per_node;
  const bool pairs = table.test == "sendrecv";
  if (ranks < 2 || (!pairs && table.test != "alltoall")) return "";
  const double each = static_cast<double>(points.back().size) / points.back().time;
  const bool inside = table.nodes == 1;
  const double away = inside ? (ranks - 1) / ranks : (1 - 1.0 / table.nodes) * table.gpus_per_node;
  const double rate = each * (pairs ? 1 : away) / kGigabitPerSecond;
  return ": its largest row sent " + std::to_string(std::llround(rate)) + " Gbit/s out of each " +
         (inside ? "GPU, which is cluster.intra.bandwidth_gbps"
                 : "node, which is cluster.inter's bandwidth_gbps times nics") +
         " for experts and pipelines";
}

constexpr const char* kNotOfAPlan = "no collective of gradients";

// Returns the reason why a table of the file is skipped; empty: it is read.
std::string passed_over(const LogFile& file, const cost::MeasuredTable& table) {
  // Plans contain no alltoall, sendrecv or gather: these are not calibrated.
  if (!table.kind && !table.test.empty()) return kNotOfAPlan + rate_shown(table);
  if (!has_times(table)) {
    return table.left_out.empty() ? "it has no time" : table.left_out.front();
  }
  if (!table.kind) {
    return "its collective is not recognised: name the file after it, all_gather.txt";
  }
  if (!file.type.empty() && table.type != file.type) return "of type " + table.type;
  const int ranks = file.nodes * file.gpus_per_node;
  if (ranks > 0 && !table.own.empty() && table.ranks > 0 && table.ranks != ranks) {
    return table.own + ", which is of " + std::to_string(table.ranks) + " ranks";
  }
  return {};
}

// Returns true if `a` comes first: sums of floats, as in jobs, precede others.
bool comes_first(const cost::MeasuredTable& a, const cost::MeasuredTable& b) {
  const auto rank = [](const cost::MeasuredTable& table) {
    return std::tuple(table.type != "float", table.redop != "sum" && !table.redop.empty(),
                      table.root > 0);
  };
  return rank(a) < rank(b);
}

std::string words_of(const cost::MeasuredTable& table) {
  std::string words = table.type;
  if (!table.redop.empty() && table.redop != "none") words += " " + table.redop;
  if (table.root >= 0) words += " root " + std::to_string(table.root);
  return words;
}

bool same_rows(const cost::MeasuredTable& a, const cost::MeasuredTable& b) {
  return a.type == b.type && a.redop == b.redop && a.root == b.root;
}

// Keeps one of the tables of one shape that differ in type, operation or root. It names the others.
std::vector<cost::MeasuredTable> one_kind_of_rows(std::vector<cost::MeasuredTable> tables) {
  std::vector<cost::MeasuredTable> kept;
  for (const cost::MeasuredTable& table : tables) {
    const auto alike = [&](const cost::MeasuredTable& other) {
      return cost::same_shape(table, other) && table.own == other.own;
    };
    const cost::MeasuredTable* best = nullptr;
    for (const cost::MeasuredTable& other : tables) {
      if (alike(other) && (best == nullptr || comes_first(other, *best))) best = &other;
    }
    if (same_rows(*best, table)) kept.push_back(table);
  }
  for (const cost::MeasuredTable& table : tables) {
    for (cost::MeasuredTable& own : kept) {
      if (!cost::same_shape(own, table) || own.own != table.own || same_rows(own, table)) continue;
      own.notes.push_back("read are the rows of " + words_of(own) + "; those of " +
                          words_of(table) + " (" + table.source + ", line " +
                          std::to_string(table.line) + ") are not: FILE:" + table.type +
                          " reads that type");
      break;
    }
  }
  return kept;
}

}  // namespace

std::string unpack_gzip(const std::string& path, std::string bytes) {
  return bytes.starts_with("\x1f\x8b") ? inflate_all(path, bytes) : bytes;
}

std::vector<cost::MeasuredTable> read_nccl_log(const std::string& path) {
  return nccl_log_from_text(path, unpack_gzip(path, read_text_file(path, "an nccl-tests log")));
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
    if (raws.empty()) raws = nccl_list_tables(text);
    if (raws.empty()) raws = nccl_column_tables(text);
    // Its times are those of training steps, including the wait for the slowest rank.
    const bool logger = text.find("busbw_avg") != text.npos && text.find("Comm. Op") != text.npos;
    problem = logger ? "is DeepSpeed's log of communication, whose times contain waiting"
                     : "contains no table of nccl-tests";
  }
  std::vector<cost::MeasuredTable> tables;
  const std::string file_name = std::filesystem::path(name).filename().string();
  for (RawTable& raw : raws) {
    for (RawTable& part : parts_of(std::move(raw))) {
      part.table.source = name;
      settle_shape(part, file_name);
      if (!part.context.devices.empty()) part.table.device = part.context.devices.front().name;
      inherit_nodes(tables, part.table);
      say_repeats(part.table);
      tables.push_back(std::move(part.table));
    }
  }
  const std::string failure = tables.empty() ? failure_in(text) : "";
  if (!failure.empty()) {
    throw InputError(name + ": the test failed before its first row, \"" + shorten_text(failure) +
                     "\": run it again");
  }
  if (tables.empty()) {
    throw InputError(name + ": " + problem +
                     "; looked for rows of size, count and type (\"1048576  262144  float ...\") "
                     "with time, algbw and busbw, as nccl-tests prints them, or its JSON (-J), and "
                     "for columns named size, time, algbw and busbw");
  }
  return tables;
}

std::vector<cost::MeasuredTable> read_tables(const std::vector<std::string>& names,
                                             const std::string& algorithm) {
  std::vector<cost::MeasuredTable> tables;
  for (const auto& argument : names) {
    const LogFile file = log_file(argument);
    const std::size_t before = tables.size();
    std::vector<std::string> others;
    std::string seen;
    bool foreign = true;  // all are of collectives that no plan contains
    for (cost::MeasuredTable& table : read_log(file.path)) {
      if (!table.kind && file.nodes > 0) cost::set_shape(table, file.nodes, file.gpus_per_node);
      const std::string why = passed_over(file, table);
      if (!why.empty()) {
        foreign = foreign && why.starts_with(kNotOfAPlan);
        const std::string test = table.test.empty() ? "unknown" : table.test;
        seen += (seen.empty() ? "" : ", ") + test + " (" + why + ")";
        others.push_back("the table of line " + std::to_string(table.line) + ", " + test +
                         ", is not read: " + why);
        continue;
      }
      if (file.nodes > 0) cost::set_shape(table, file.nodes, file.gpus_per_node);
      choose_forced(file, kAlgorithms.at(algorithm), table);
      check_table(file, table);
      const auto first =
          std::find_if(tables.begin() + static_cast<std::ptrdiff_t>(before), tables.end(),
                       [&](const auto& other) {
                         return cost::same_shape(other, table) && other.own != table.own;
                       });
      if (first != tables.end()) {
        others.push_back("the table of line " + std::to_string(table.line) + ", " + table.test +
                         ", is not read: " + table.own + ", after " + first->own +
                         " of the same counts; give it in a file of its own");
        continue;
      }
      say_small(table);
      tables.push_back(std::move(table));
    }
    if (tables.size() == before) {
      throw InputError(file.path +
                       ": expected all_reduce, all_gather, reduce_scatter, broadcast or reduce, "
                       "found " +
                       seen + (foreign ? "; run all_reduce_perf on the same nodes" : ""));
    }
    auto& notes = tables[before].notes;
    notes.insert(notes.end(), others.begin(), others.end());
  }
  return one_kind_of_rows(std::move(tables));
}

}  // namespace syncline::calibrate
