// Results as lists: RCCL's tests with -Z (JSON or CSV), with one place of a result per entry, and
// Gaudi's hccl_demo.
#include <algorithm>
#include <cctype>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "formats/nccl_log/nccl_log_parts.h"
#include "formats/nccl_log/nccl_log_words.h"

namespace syncline::calibrate {
namespace {

// Values by the names of their columns, reduced to small letters and digits.
using Entry = std::map<std::string, std::string>;

std::string trimmed(std::string_view cell) {
  constexpr const char* kAround = " \t\r\"";
  const std::size_t begin = cell.find_first_not_of(kAround);
  if (begin == cell.npos) return {};
  return std::string(cell.substr(begin, cell.find_last_not_of(kAround) - begin + 1));
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(',', at), line.size());
    cells.push_back(trimmed(line.substr(at, end - at)));
    at = end + 1;
  }
  return cells;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string value_of(const Entry& entry, const char* name) {
  const auto found = entry.find(name);
  return found == entry.end() ? std::string() : found->second;
}

bool is_result(const Entry& entry) {
  return std::ranges::all_of(std::initializer_list<const char*>{"size", "time", "algbw", "busbw"},
                             [&](const char* name) { return entry.contains(name); });
}

std::vector<Entry> json_entries(std::string_view text) {
  std::vector<Entry> entries;
  const auto list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array()) return entries;
  for (const auto& object : list) {
    if (!object.is_object()) continue;
    Entry entry;
    for (const auto& [name, value] : object.items()) {
      entry[plain_name(name)] = value.is_string() ? value.get<std::string>() : value.dump();
    }
    if (is_result(entry)) entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<Entry> csv_entries(std::string_view text) {
  std::vector<Entry> entries;
  std::vector<std::string> names;
  for (const std::string_view line : lines_of(text)) {
    const std::vector<std::string> cells = cells_of(line);
    Entry entry;
    for (std::size_t i = 0; i < std::min(names.size(), cells.size()); ++i) {
      entry[names[i]] = cells[i];
    }
    if (is_result(entry) && amount_of(entry["size"])) {
      entries.push_back(std::move(entry));
      continue;
    }
    Entry head;
    for (const std::string& cell : cells) head[plain_name(cell)] = cell;
    if (!is_result(head)) continue;
    names.clear();
    for (const std::string& cell : cells) names.push_back(plain_name(cell));
  }
  return entries;
}

// Returns the number after a name and "=" or blanks: "--nranks 16", "HCCL_NRANKS=16"; 0: none.
int number_after(std::string_view line, std::string_view name) {
  std::size_t at = line.find(name);
  if (at == line.npos) return 0;
  at = line.find_first_not_of("= ", at + name.size());
  if (at == line.npos) return 0;
  return number_of<int>(line.substr(at, line.find_first_not_of("0123456789", at) - at)).value_or(0);
}

// Reads the results of Gaudi's hccl_demo, three lines each: the call, and its rates by the network
// and by size / time.
std::vector<Entry> demo_entries(std::string_view text) {
  std::vector<Entry> entries;
  Entry entry;
  int ranks = 0, per_node = 0;
  for (const std::string_view given : lines_of(text)) {
    std::string line(given);
    std::ranges::transform(line, line.begin(), [](unsigned char c) { return std::tolower(c); });
    if (const int found = number_after(line, "nranks"); found > 0) ranks = found;
    if (const int found = number_after(line, "ranks_per_node"); found > 0) per_node = found;
    const std::size_t begin = line.find("[benchmark]");
    if (begin == line.npos) continue;
    const std::string_view said = std::string_view(line).substr(begin);
    if (said.find("hccl") != said.npos) entry.clear();
    for (const char* call : {"allreduce", "broadcast", "reduce"}) {
      if (said.find(std::string("hccl") + call + "(") == said.npos) continue;
      entry = {{"name", call}, {"redop", *call == 'b' ? "none" : "sum"}};
      const std::size_t type = said.find("dtype=") + 6;
      entry["type"] = said.substr(type, said.find_first_of(",)", type) - type);
      const std::int64_t count = number_after(said, "count=");
      entry["size"] = std::to_string(count * nccl_type_size(entry["type"]));
    }
    const std::size_t colon = said.find(':');
    if (entry.empty() || colon == said.npos) continue;
    const std::string rate = trimmed(said.substr(colon + 1, said.find("gb/s") - colon - 1));
    const bool of_network = said.find("nw bandwidth") != said.npos;
    const auto amount = amount_of(rate);
    if (!amount || *amount <= 0) continue;
    entry[of_network ? "busbw" : "algbw"] = rate;
    if (!entry.contains("algbw")) continue;
    entry["time"] = std::to_string(std::stod(entry["size"]) / *amount / 1e3);
    if (ranks > 0) entry["ranks"] = std::to_string(ranks);
    if (ranks > 0 && per_node > 0) entry["nodes"] = std::to_string(ranks / per_node);
    entries.push_back(std::move(entry));
    entry.clear();
  }
  return entries;
}

// Stores the tables of the entries read so far: one per collective and number of ranks. A row has
// one entry in place and one out of place; a row that lacks one is found by its key.
class ListTables {
 public:
  void add(const Entry& entry, int line) {
    LogRow wanted;
    wanted.line = line;
    wanted.row.size = number_of<std::int64_t>(value_of(entry, "size")).value_or(-1);
    wanted.row.type = value_of(entry, "type");
    wanted.row.redop = value_of(entry, "redop");
    const auto time = amount_of(value_of(entry, "time"));
    const auto alg = amount_of(value_of(entry, "algbw"));
    if (wanted.row.size < 0 || nccl_type_size(wanted.row.type) == 0 || !time || !alg) return;
    const bool out = value_of(entry, "inplace") != "1";
    LogRow& of = row_of(table_of(entry), wanted, out);
    (out ? of.row.out_of_place : of.row.in_place) = *time * kMicrosecond;
    if (out) of.row.out_of_place_alg = *alg * kGigabytePerSecond;
    const std::string bus = value_of(entry, "busbw");
    of.places[out ? 0 : 1] = {half_unit(value_of(entry, "time")), *alg,
                              half_unit(value_of(entry, "algbw")), amount_of(bus).value_or(-1),
                              half_unit(bus)};
    const auto wrong = amount_of(value_of(entry, "wrong"));
    (out ? of.row.out_of_place_wrong : of.row.in_place_wrong) = wrong;
    if (wrong.value_or(0) > 0) of.leave_out(out, "wrong is " + value_of(entry, "wrong"));
  }

  std::vector<RawTable> take() { return std::move(tables_); }

 private:
  // Returns the number of that collective's table on that many ranks.
  std::size_t table_of(const Entry& entry) {
    LogContext context;
    const std::string name = value_of(entry, "name");
    context.test = test_name(name.empty() ? value_of(entry, "collective") : name);
    const auto count_in = [&](const char* key) {
      constexpr int kMax = 1 << 20;
      const int count = number_of<int>(value_of(entry, key)).value_or(0);
      return count > 0 && count <= kMax ? count : 0;
    };
    // Without MPI one process has all GPUs. A rank in RCCL's lists is a process.
    const int processes = count_in("ranks");
    const int each = std::max(1, count_in("gpusperrank"));
    context.said_nodes = processes > 0 ? count_in("nodes") : count_in("gpus") > 0 ? 1 : 0;
    context.said_gpus =
        processes > 0 && each <= (1 << 20) / processes ? processes * each : count_in("gpus");
    const auto [found, added] = numbers_.try_emplace(
        std::tuple(context.test, context.said_gpus, context.said_nodes), tables_.size());
    if (!added) return found->second;
    RawTable& raw = tables_.emplace_back();
    raw.table.line = 1;
    raw.context = std::move(context);
    return found->second;
  }

  // Returns the first row that still lacks this place; if there is none, a new row.
  LogRow& row_of(std::size_t table, const LogRow& wanted, bool out) {
    const auto key = [&](bool place) {
      return std::tuple(table, wanted.row.size, wanted.row.type, wanted.row.redop, place);
    };
    std::vector<LogRow>& rows = tables_[table].rows;
    std::deque<std::size_t>& lacking = lacking_[key(out)];
    if (!lacking.empty()) {
      const std::size_t row = lacking.front();
      lacking.pop_front();
      return rows[row];
    }
    lacking_[key(!out)].push_back(rows.size());
    return rows.emplace_back(wanted);
  }

  std::vector<RawTable> tables_;
  std::map<std::tuple<std::string, int, int>, std::size_t> numbers_;
  // Rows of a table, size, type and operation without a result in place or out of place (true).
  std::map<std::tuple<std::size_t, Bytes, std::string, std::string, bool>, std::deque<std::size_t>>
      lacking_;
};

}  // namespace

std::vector<RawTable> nccl_list_tables(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != text.npos && text[first] == '[';
  ListTables read;
  int line = 1;  // in CSV; JSON has none
  for (const Entry& entry : json ? json_entries(text) : csv_entries(text)) {
    read.add(entry, json ? 1 : ++line);
  }
  for (const Entry& entry : demo_entries(text)) read.add(entry, 1);
  return read.take();
}

}  // namespace syncline::calibrate
