// Tables with named columns that people make of such tests, and that other libraries' tests print:
// CSV, Markdown and columns of blanks, with units in heads or cells: "| Size | Time (us) | algBW
// |".
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "formats/nccl_log/nccl_log_launch.h"
#include "formats/nccl_log/nccl_log_parts.h"
#include "formats/nccl_log/nccl_log_words.h"

namespace syncline::calibrate {
namespace {

enum class Meaning {
  kOther,
  kSize,
  kTime,
  kAlg,
  kBus,
  kWrong,
  kType,
  kRedop,
  kTest,
  kRanks,
  kNodes
};

struct NamedColumn {
  Meaning meaning = Meaning::kOther;
  bool in_place = false;
  double scale = 1;  // of its unit: to microseconds, to GB/s
  std::string unit;  // of a size whose cell has none
  std::string name;  // as the table has it
};

bool is_named(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::ranges::count(list, word) > 0;
}

bool starts_one_of(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::ranges::any_of(list, [&](auto start) { return word.starts_with(start); });
}

// Returns the scale of a rate's unit in the words of a head or cell to GB/s.
double rate_scale(std::string_view words) {
  const auto has = [&](std::string_view unit) { return words.find(unit) != words.npos; };
  if (has("Gb/s") || has("Gbit")) return 1.0 / 8;
  return has("MB/s") ? 1e-3 : 1;
}

// Returns the scale of a time's unit by the end of a plain name to microseconds.
double time_scale(std::string_view name) {
  if (name.ends_with("ms")) return 1e3;
  return name.ends_with("sec") && !name.ends_with("usec") ? 1e6 : 1;
}

// Removes the unit at the end of a plain name of a column of sizes, and returns it.
std::string take_size_unit(std::string_view& name) {
  for (const std::string_view unit : {"KiB", "MiB", "GiB", "KB", "MB", "GB"}) {
    if (!name.ends_with(plain_name(unit)) || name.find("size") == name.npos) continue;
    name.remove_suffix(unit.size());
    return std::string(unit);
  }
  return {};
}

NamedColumn named_column(std::string_view cell) {
  const std::string whole = plain_name(cell);
  std::string_view name = whole;
  NamedColumn column;
  column.name = whole;
  for (const std::string_view place : {"outofplace", "oop", "inplace", "ip"}) {
    if (!name.starts_with(place) || name == place) continue;
    column.in_place = place.starts_with("i");
    name.remove_prefix(place.size());
    break;
  }
  column.unit = take_size_unit(name);
  const bool rate = name.find("bw") != name.npos || name.find("bandwidth") != name.npos;
  if (rate && (name.starts_with("alg") || starts_one_of(name, {"bus", "nw"}))) {
    column.meaning = name.starts_with("alg") ? Meaning::kAlg : Meaning::kBus;
    column.scale = rate_scale(cell);
  } else if (starts_one_of(name,
                           {"time", "latency", "avgtime", "avegtime", "avglatency", "tavg"})) {
    column.meaning = Meaning::kTime;
    column.scale = time_scale(name);
  } else if (is_named(name, {"size", "bytes", "payload"}) ||
             starts_one_of(name, {"sizeb", "datasize", "messagesize", "msgsize", "buffersize"})) {
    column.meaning = Meaning::kSize;
  } else if (name == "wrong") {
    column.meaning = Meaning::kWrong;
  } else if (is_named(name, {"type", "dtype", "datatype"})) {
    column.meaning = Meaning::kType;
  } else if (name == "redop") {
    column.meaning = Meaning::kRedop;
  } else if (is_named(name, {"op", "operation", "collective", "kind", "test"})) {
    column.meaning = Meaning::kTest;
  } else if (is_named(name, {"np", "ranks", "nranks", "gpus", "ngpus", "tp", "worldsize"})) {
    column.meaning = Meaning::kRanks;
  } else if (is_named(name, {"nodes", "nnodes"})) {
    column.meaning = Meaning::kNodes;
  }
  return column;
}

// A number with the words after it: 2,169.8; 1 MiB; 0.32 ms.
struct Amount {
  double value = 0;
  double half = 0;  // of a unit of the last digit
  std::string unit;
};

std::optional<Amount> amount_in(std::string_view cell, bool commas) {
  constexpr const char* kMarks = " \t\r*`\"";
  const std::size_t begin = cell.find_first_not_of(kMarks);
  if (begin == cell.npos) return std::nullopt;
  cell.remove_prefix(begin);
  std::string digits;
  std::size_t at = 0;
  for (; at < cell.size(); ++at) {
    if (commas && cell[at] == ',' && at > 0) continue;
    if (std::string_view("0123456789.").find(cell[at]) == std::string_view::npos) break;
    digits += cell[at];
  }
  const auto value = amount_of(digits);
  if (!value) return std::nullopt;
  cell.remove_prefix(at);
  const std::size_t unit = std::min(cell.find_first_not_of(kMarks), cell.size());
  cell.remove_prefix(unit);
  return Amount{
      *value, half_unit(digits),
      std::string(cell.substr(0, std::min(cell.find_first_of(" *`\"\t\r"), cell.size())))};
}

// A size and if its unit may be of 1000 or of 1024.
struct Size {
  double value = 0;
  int power = 0;         // of 1024 or 1000
  bool decimal = false;  // it may be of 1000: MB
};

std::optional<Size> size_in(std::string_view cell, bool commas, const std::string& of_column) {
  const auto amount = amount_in(cell, commas);
  if (!amount) return std::nullopt;
  const std::string& unit = amount->unit.empty() ? of_column : amount->unit;
  const std::size_t power =
      unit.empty()
          ? 0
          : std::string_view(" KMGT").find(static_cast<char>(unit[0] == 'k' ? 'K' : unit[0]));
  if (unit.empty() || is_named(unit, {"B", "bytes"})) return Size{amount->value, 0, false};
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = std::string_view(unit).substr(1);
  if (!is_named(rest, {"", "B", "iB", "b"})) return std::nullopt;
  return Size{amount->value, static_cast<int>(power), rest == "B"};
}

using Cells = std::vector<std::string_view>;

enum class Form { kBlanks, kCommas, kBars };

// Divides a line; bars of Markdown may stand at both ends.
Cells divided(std::string_view line, Form form) {
  if (form == Form::kBlanks) return split_words(line);
  const char mark = form == Form::kBars ? '|' : ',';
  const std::size_t begin = line.find_first_not_of(" \t\r");
  if (begin == line.npos) return {};
  line = line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
  if (form == Form::kBars && line.starts_with('|')) line.remove_prefix(1);
  if (form == Form::kBars && line.ends_with('|')) line.remove_suffix(1);
  Cells cells;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(mark, at), line.size());
    cells.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return cells;
}

Form form_of(std::string_view line) {
  if (std::ranges::count(line, '|') >= 2) return Form::kBars;
  return std::ranges::count(line, ',') >= 1 ? Form::kCommas : Form::kBlanks;
}

struct NamedHead {
  Form form = Form::kBlanks;
  std::vector<NamedColumn> columns;
  int line = 0;

  bool has(Meaning meaning) const {
    return std::ranges::any_of(columns, [&](const auto& one) { return one.meaning == meaning; });
  }
};

// Reads a head: a size, and a time or rate. The first column of a table of rates is the size where
// no other is named so, as other languages name it.
std::optional<NamedHead> named_head(std::string_view line, bool test_said) {
  NamedHead head;
  head.form = form_of(line);
  Cells cells = divided(line, head.form);
  if (!cells.empty() && head.form == Form::kBlanks && cells.front() == "#")
    cells.erase(cells.begin());
  // Two words of a sentence are no head.
  if (cells.size() < (head.form == Form::kBlanks ? 3 : 2)) return std::nullopt;
  for (const std::string_view cell : cells) head.columns.push_back(named_column(cell));
  const bool rates = head.has(Meaning::kAlg) || head.has(Meaning::kBus);
  if (!head.has(Meaning::kSize) && head.has(Meaning::kAlg) && head.has(Meaning::kBus) &&
      head.columns.front().meaning == Meaning::kOther)
    head.columns.front().meaning = Meaning::kSize;
  const bool timed = head.has(Meaning::kAlg) || head.has(Meaning::kTime);
  return head.has(Meaning::kSize) && timed && (rates || test_said) ? std::optional(head)
                                                                   : std::nullopt;
}

// The lines before a table, the newest last: they name the collective and the numbers of ranks.
class Captions {
 public:
  void add(std::string_view line) {
    lines_.emplace_back(line);
    if (lines_.size() > kMost) lines_.pop_front();
    for (const auto& [name, value] : find_settings(line).values) settings_[name] = value;
  }
  std::string test() const {
    for (auto line = lines_.rbegin(); line != lines_.rend(); ++line) {
      const std::string test = test_in_sentence(*line);
      if (!test.empty()) return test;
    }
    return {};
  }
  SaidShape shape() const {
    SaidShape shape;
    for (auto line = lines_.rbegin(); line != lines_.rend(); ++line) {
      const SaidShape said = shape_in(*line);
      if (shape.nodes == 0) shape.nodes = said.nodes;
      if (shape.ranks == 0) shape.ranks = said.ranks;
      if (shape.gpus_each == 0) shape.gpus_each = said.gpus_each;
    }
    return shape;
  }
  // Returns NCCL's environment in the lines since the last call.
  std::map<std::string, std::string> take_settings() { return std::exchange(settings_, {}); }

 private:
  static constexpr std::size_t kMost = 50;
  std::deque<std::string> lines_;
  std::map<std::string, std::string> settings_;
};

struct NamedRow {
  LogRow row;
  Size size;
  std::string test;
  int ranks = 0;
  int nodes = 0;
  std::string own;                           // its column of ranks: "np 4"
  std::map<std::string, std::string> words;  // in columns of no meaning here, by their names
};

// Reads a cell's time and rates into a place of the row.
void take_amount(const NamedColumn& column, std::string_view cell, bool commas, NamedRow& into) {
  const auto amount = amount_in(cell, commas);
  if (!amount) return;
  PrintedPlace& place = into.row.places[column.in_place ? 1 : 0];
  auto& time = column.in_place ? into.row.row.in_place : into.row.row.out_of_place;
  auto& wrong = column.in_place ? into.row.row.in_place_wrong : into.row.row.out_of_place_wrong;
  const double rate = amount->unit.empty() ? column.scale : rate_scale(amount->unit);
  if (column.meaning == Meaning::kTime) {
    const double scale = amount->unit.empty()  ? column.scale
                         : amount->unit == "s" ? 1e6
                                               : time_scale(amount->unit);
    time = amount->value * scale * kMicrosecond;
    place.time_half = amount->half * scale;
  } else if (column.meaning == Meaning::kAlg) {
    place.alg = amount->value * rate;
    place.alg_half = amount->half * rate;
  } else if (column.meaning == Meaning::kBus) {
    place.bus = amount->value * rate;
    place.bus_half = amount->half * rate;
  } else if (column.meaning == Meaning::kWrong) {
    wrong = amount->value;
  }
}

// Returns a cell without Markdown around it.
std::string_view trimmed_cell(std::string_view cell) {
  constexpr const char* kMarks = " \t\r*`\"";
  const std::size_t begin = cell.find_first_not_of(kMarks);
  if (begin == cell.npos) return {};
  return cell.substr(begin, cell.find_last_not_of(kMarks) - begin + 1);
}

std::optional<NamedRow> named_row(const NamedHead& head, const Cells& cells, int line) {
  if (cells.size() != head.columns.size()) return std::nullopt;
  const bool commas = head.form != Form::kCommas;
  NamedRow read;
  read.row.line = line;
  bool sized = false;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const NamedColumn& column = head.columns[i];
    const auto count = [&] {
      const auto amount = amount_in(cells[i], commas);
      return amount && amount->value <= (1 << 20) ? static_cast<int>(amount->value) : 0;
    };
    if (column.meaning == Meaning::kSize) {
      const auto size = size_in(cells[i], commas, column.unit);
      sized = size.has_value();
      if (size) read.size = *size;
    } else if (column.meaning == Meaning::kTest) {
      read.test = test_name(cells[i]);
    } else if (column.meaning == Meaning::kRanks) {
      read.ranks = count();
      read.own = column.name + " " + std::to_string(read.ranks);
    } else if (column.meaning == Meaning::kNodes) {
      read.nodes = count();
    } else if (column.meaning == Meaning::kType || column.meaning == Meaning::kRedop) {
      (column.meaning == Meaning::kType ? read.row.row.type : read.row.row.redop) =
          trimmed_cell(cells[i]);
    } else if (column.meaning == Meaning::kOther) {
      const std::string word(trimmed_cell(cells[i]));
      if (!word.empty() && !amount_of(word)) read.words[column.name] = word;
    } else {
      take_amount(column, cells[i], commas, read);
    }
  }
  if (nccl_type_size(read.row.row.type) == 0) read.row.row.type = "float";
  return sized ? std::optional(read) : std::nullopt;
}

// One table as found: its head, rows and captions.
class NamedTable {
 public:
  NamedTable(NamedHead head, Captions& captions)
      : head_(std::move(head)),
        test_(captions.test()),
        shape_(captions.shape()),
        settings_(captions.take_settings()) {}

  const NamedHead& head() const { return head_; }
  NamedHead& head() { return head_; }
  void add(NamedRow row) { rows_.push_back(std::move(row)); }

  // Adds a table for each collective and number of ranks.
  void finish(std::vector<RawTable>& tables) {
    settle_sizes();
    settle_rates();
    divide_by_words();
    std::map<std::tuple<std::string, int, int, std::string>, std::size_t> numbers;
    for (NamedRow& read : rows_) {
      settle_place(read.row, 0);
      settle_place(read.row, 1);
      const std::string& test = read.test.empty() ? test_ : read.test;
      const int ranks = read.ranks > 0 ? read.ranks : shape_.ranks;
      const int nodes = read.nodes > 0 ? read.nodes : shape_.nodes;
      const auto [found, added] =
          numbers.try_emplace(std::tuple(test, ranks, nodes, read.own), tables.size());
      if (added) tables.push_back(begun(read, test, ranks, nodes));
      tables[found->second].rows.push_back(std::move(read.row));
    }
  }

 private:
  RawTable begun(const NamedRow& read, const std::string& test, int ranks, int nodes) const {
    RawTable raw;
    raw.table.line = head_.line;
    raw.table.own = read.own;
    raw.context.said_test = test;
    raw.context.said_gpus = ranks;
    raw.context.said_nodes = nodes;
    raw.context.gpus_each = shape_.gpus_each;
    raw.context.nodes_guessed = nodes > 0 && read.nodes == 0;
    raw.context.settings = settings_;
    if (!head_.has(Meaning::kTime))
      raw.table.notes.emplace_back("times are size / algbw, as the table has none");
    if (binary_rates_)
      raw.table.notes.emplace_back(
          "its rates are GiB/s, as size / time is, whatever its head says");
    if (base_unknown_) raw.table.notes.emplace_back("KB, MB and GB are read as powers of 1024");
    return raw;
  }

  // Divides rows by the first column with words that tell rows of one size apart, "ring", "tree".
  // Numbers do not: they may count repetitions.
  void divide_by_words() {
    std::map<std::tuple<std::string, int, int, Bytes, std::string>, const NamedRow*> seen;
    for (const NamedRow& read : rows_) {
      const auto [found, added] = seen.try_emplace(
          std::tuple(read.test, read.ranks, read.nodes, read.row.row.size, read.row.row.type),
          &read);
      if (added) continue;
      for (const NamedColumn& column : head_.columns) {
        const auto a = read.words.find(column.name), b = found->second->words.find(column.name);
        const bool both = a != read.words.end() && b != found->second->words.end();
        if (!both || a->second == b->second) continue;
        for (NamedRow& each : rows_) each.own = column.name + " " + each.words[column.name];
        return;
      }
    }
  }

  // Sets sizes in bytes. MB may be of 1000 or 1024: size / algbw is the time.
  void settle_sizes() {
    int thousands = 0, others = 0;
    for (const NamedRow& read : rows_) {
      const PrintedPlace& place = read.row.places[0];
      if (!read.size.decimal || !read.row.row.out_of_place || !(place.alg > 20 * place.alg_half))
        continue;
      const double bytes = *read.row.row.out_of_place * place.alg * kGigabytePerSecond;
      const double ratio = std::log(bytes / (read.size.value * std::pow(1024, read.size.power)));
      const double half = std::log(1000.0 / 1024) * read.size.power / 2;
      (ratio < half ? thousands : others) += 1;
    }
    const double base = thousands > others ? 1000 : 1024;
    for (NamedRow& read : rows_) {
      base_unknown_ |= read.size.decimal && read.size.power > 0 && thousands + others == 0;
      const double size =
          read.size.value * std::pow(read.size.decimal ? base : 1024, read.size.power);
      read.row.row.size = size < 1e18 ? static_cast<Bytes>(std::llround(size)) : -1;
    }
  }

  // Sets rates of GiB/s to GB/s: size / time is the rate in every row.
  void settle_rates() {
    constexpr double kGibi = 1.073741824, kNear = 0.01;
    int binary = 0, others = 0;
    for (const NamedRow& read : rows_) {
      const PrintedPlace& place = read.row.places[0];
      const auto& time = read.row.row.out_of_place;
      if (!time || *time <= 0 || !(place.alg > 100 * place.alg_half)) continue;
      const double rate = static_cast<double>(read.row.row.size) / *time / kGigabytePerSecond;
      (std::abs(rate / place.alg / kGibi - 1) < kNear ? binary : others) += 1;
    }
    binary_rates_ = binary > 0 && others == 0;
    if (!binary_rates_) return;
    for (NamedRow& read : rows_) {
      for (PrintedPlace& place : read.row.places) {
        for (double* rate : {&place.alg, &place.alg_half, &place.bus, &place.bus_half})
          *rate *= kGibi;
      }
    }
  }

  // Sets a time that the table lacks, or a rate.
  static void settle_place(LogRow& row, int which) {
    PrintedPlace& place = row.places[which];
    auto& time = which == 0 ? row.row.out_of_place : row.row.in_place;
    const double kilobytes = static_cast<double>(row.row.size) / 1e3;  // in us at 1 GB/s
    if (!time && place.alg > 0) {
      time = kilobytes / place.alg * kMicrosecond;
      place.time_half = *time / kMicrosecond * place.alg_half / place.alg;
    } else if (time && *time > 0 && place.alg_half == 0) {
      place.alg = kilobytes / (*time / kMicrosecond);
      place.alg_half = place.alg * place.time_half / (*time / kMicrosecond);
    }
    if (which == 0) row.row.out_of_place_alg = place.alg * kGigabytePerSecond;
  }

  NamedHead head_;
  std::string test_;
  SaidShape shape_;
  std::map<std::string, std::string> settings_;
  std::vector<NamedRow> rows_;
  bool binary_rates_ = false;  // GiB/s under the name of GB/s, as AWS's nccom-test prints
  bool base_unknown_ = false;  // sizes in MB, and no time tells their base
};

// Returns true for lines that belong to a table without being a row: Markdown's rule, a row without
// a size, a comment of CSV.
bool is_between(std::string_view line, const NamedHead& head) {
  if (head.form == Form::kBars) return std::ranges::count(line, '|') > 0;
  return head.form == Form::kCommas && (line.empty() || line.front() == '#');
}

}  // namespace

std::vector<RawTable> nccl_column_tables(std::string_view text) {
  std::vector<RawTable> tables;
  Captions captions;
  std::optional<NamedTable> open;
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = plain_line(text.substr(at, end - at));
    at = end + 1;
    ++number;
    if (auto head = named_head(line, !captions.test().empty())) {
      if (open) open->finish(tables);
      head->line = number;
      open.emplace(std::move(*head), captions);
      continue;
    }
    if (open) {
      if (auto row = named_row(open->head(), divided(line, open->head().form), number)) {
        open->add(std::move(*row));
        continue;
      }
      if (is_between(line, open->head())) continue;
      open->finish(tables);
      open.reset();
    }
    captions.add(line);
  }
  if (open) open->finish(tables);
  std::erase_if(tables, [](const RawTable& raw) { return raw.rows.empty(); });
  return tables;
}

}  // namespace syncline::calibrate
