// A tuner plugin for NCCL: a table of algorithms and protocols by size and communicator, because no
// setting of NCCL has size ranges or tells communicators apart. Implements the v4 interface, which
// NCCL 2.24 to 2.30 load; its types are declared here, so that no header of NCCL is needed.
//
//   NCCL_TUNER_PLUGIN=PATH/libsyncline_nccl_tuner.so SYNCLINE_NCCL_TABLE=table.csv
//
// A line of the table; the first that fits counts:
//   collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks
// in lower case, # begins a comment, -1 (for a protocol: any) leaves a column open. If no line
// fits, NCCL chooses, its number of channels too. Combinations that NCCL cannot run stay forbidden.
// A wrong table is reported in NCCL's log and changes nothing.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace syncline::nccl_backend {

// NCCL's interface. Its enumerations are plain numbers here, as any caller may declare them.
using NcclResult = int;
constexpr NcclResult kSuccess = 0;
constexpr int kWarn = 2;
constexpr int kInfo = 3;
constexpr unsigned long kTuning = 64;  // NCCL's subsystem for log messages
using Log = void (*)(int level, unsigned long about, const char* file, int line, const char* format,
                     ...);

struct TunerV4 {
  const char* name;
  NcclResult (*init)(std::size_t ranks, std::size_t nodes, Log log, void** context);
  NcclResult (*choose)(void* context, int collective, std::size_t bytes, int pipe_operations,
                       float** costs, int algorithms, int protocols, int registered, int* channels);
  NcclResult (*destroy)(void* context);
};

namespace {

constexpr std::array<std::string_view, 5> kCollectives{"broadcast", "reduce", "allgather",
                                                       "reducescatter", "allreduce"};
constexpr std::array<std::string_view, 7> kAlgorithms{
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
constexpr std::array<std::string_view, 3> kProtocols{"ll", "ll128", "simple"};
constexpr int kAny = -1;
constexpr float kForbidden = -1.0F;

struct Row {
  int collective = 0;
  long long min_bytes = 0;
  long long max_bytes = kAny;
  int algorithm = 0;
  int protocol = kAny;
  int channels = kAny;
  int nodes = kAny;
  int ranks = kAny;
};

// The rows for one communicator.
struct Table {
  std::vector<Row> rows;
};

template <std::size_t N>
bool read_word(const std::string& text, const std::array<std::string_view, N>& words, int& place) {
  const auto found = std::find(words.begin(), words.end(), text);
  place = static_cast<int>(found - words.begin());
  return found != words.end();
}

template <typename Number>
bool read_number(const std::string& text, Number& number) {
  std::istringstream in(text);
  return in >> number && in.eof() && number >= kAny;
}

bool read_row(const std::string& line, Row& row) {
  std::vector<std::string> columns;
  std::istringstream in(line);
  for (std::string column; std::getline(in, column, ',');) columns.push_back(column);
  if (columns.size() != 8) return false;
  const bool any = columns[4] == "any" || columns[4] == "-1";
  if (any) row.protocol = kAny;
  return read_word(columns[0], kCollectives, row.collective) &&
         read_number(columns[1], row.min_bytes) && read_number(columns[2], row.max_bytes) &&
         read_word(columns[3], kAlgorithms, row.algorithm) &&
         (any || read_word(columns[4], kProtocols, row.protocol)) &&
         read_number(columns[5], row.channels) && read_number(columns[6], row.nodes) &&
         read_number(columns[7], row.ranks);
}

// Returns the rows for communicators with these nodes and ranks. Empty if a line is wrong.
std::vector<Row> read_rows(const char* path, int nodes, int ranks, Log log) {
  std::ifstream file(path);
  if (!file) log(kWarn, kTuning, __FILE__, __LINE__, "syncline: %s cannot be read", path);
  std::vector<Row> rows;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    line.erase(std::find(line.begin(), line.end(), '#'), line.end());
    std::erase_if(line, [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
    if (line.empty()) continue;
    Row row;
    if (!read_row(line, row)) {
      log(kWarn, kTuning, __FILE__, __LINE__, "syncline: %s:%d is no line of a table: %s", path,
          number, line.c_str());
      return {};
    }
    const bool fits =
        (row.nodes == kAny || row.nodes == nodes) && (row.ranks == kAny || row.ranks == ranks);
    if (fits) rows.push_back(row);
  }
  return rows;
}

NcclResult init(std::size_t ranks, std::size_t nodes, Log log, void** context) {
  auto* table = new Table;
  *context = table;
  const char* path = std::getenv("SYNCLINE_NCCL_TABLE");
  if (path == nullptr) {
    log(kWarn, kTuning, __FILE__, __LINE__, "syncline: SYNCLINE_NCCL_TABLE names no table");
    return kSuccess;
  }
  table->rows = read_rows(path, static_cast<int>(nodes), static_cast<int>(ranks), log);
  log(kInfo, kTuning, __FILE__, __LINE__, "syncline: %d lines of %s for %d ranks on %d nodes",
      static_cast<int>(table->rows.size()), path, static_cast<int>(ranks), static_cast<int>(nodes));
  return kSuccess;
}

// Forbids all cells but the row's, as NCCL takes the cheapest. `costs` is an array of
// [algorithms][protocols], despite its declared type.
NcclResult choose(void* context, int collective, std::size_t bytes, int, float** costs,
                  int algorithms, int protocols, int, int* channels) {
  const auto size = static_cast<long long>(bytes);
  for (const Row& row : static_cast<const Table*>(context)->rows) {
    const bool fits = row.collective == collective && size >= row.min_bytes &&
                      (row.max_bytes == kAny || size <= row.max_bytes);
    if (!fits) continue;
    auto* cells = reinterpret_cast<float*>(costs);
    const auto wanted = [&](int a, int p) {
      return a == row.algorithm && (row.protocol == kAny || p == row.protocol);
    };
    bool possible = false;
    for (int i = 0; i < algorithms * protocols; ++i) {
      possible |= wanted(i / protocols, i % protocols) && cells[i] != kForbidden;
    }
    if (!possible) return kSuccess;
    for (int i = 0; i < algorithms * protocols; ++i) {
      if (!wanted(i / protocols, i % protocols)) cells[i] = kForbidden;
    }
    if (row.channels > 0) *channels = row.channels;
    return kSuccess;
  }
  return kSuccess;
}

NcclResult destroy(void* context) {
  delete static_cast<Table*>(context);
  return kSuccess;
}

}  // namespace
}  // namespace syncline::nccl_backend

// NCCL looks this symbol up by name.
extern "C" {
[[gnu::visibility("default")]] extern const syncline::nccl_backend::TunerV4 ncclTunerPlugin_v4;
const syncline::nccl_backend::TunerV4 ncclTunerPlugin_v4{"syncline", syncline::nccl_backend::init,
                                                         syncline::nccl_backend::choose,
                                                         syncline::nccl_backend::destroy};
}
// NOLINTEND(readability-identifier-naming)
