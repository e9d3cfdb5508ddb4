// The text that nccl-tests prints. One pass over the lines; each is a row, a table's head, a fact
// about the run, or nothing. A row can be torn by NCCL's own lines ("... sum  -1n013:161:161 [0]
// NCCL INFO ..."): it then waits for the rest of its values.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "formats/nccl_log/nccl_log_parts.h"

namespace syncline::calibrate {
namespace {

using Tokens = std::vector<std::string_view>;

// The words of a line, between blanks.
Tokens split_words(std::string_view line) {
  constexpr std::string_view kBlanks(" \t\r\0", 4);
  Tokens tokens;
  for (std::size_t begin = line.find_first_not_of(kBlanks); begin < line.size();) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    tokens.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kBlanks, end);
  }
  return tokens;
}

// What stands in place of an amount where a measurement went wrong: "nan", "-inf", "-3.5".
bool is_bad_amount(std::string_view word) { return number_of<double>(word) && !amount_of(word); }

// Half a unit of the last digit of a printed number: 0.005 for "12.34".
double half_unit(std::string_view word) {
  double half = 0.5;
  const std::size_t exponent = word.find_first_of("eE");
  const std::string_view mantissa = word.substr(0, exponent);
  const std::size_t point = mantissa.find('.');
  if (point != std::string_view::npos) {
    half *= std::pow(10, -static_cast<double>(mantissa.size() - point - 1));
  }
  if (exponent != std::string_view::npos) {
    // from_chars takes no plus sign.
    std::string_view power = word.substr(exponent + 1);
    if (!power.empty() && power.front() == '+') power.remove_prefix(1);
    half *= std::pow(10, number_of<int>(power).value_or(0));
  }
  return half;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes out "[3]", which mpiexec -prepend-rank puts ahead of each piece of a line.
void drop_ranks(std::string& text) {
  for (std::size_t at = text.find('['); at != text.npos; at = text.find('[', at + 1)) {
    std::size_t end = at + 1;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end > at + 1 && end < text.size() && text[end] == ']') text.replace(at, end - at + 1, " ");
  }
}

// Cells of CSV and Markdown as words; of an empty one "-" stays.
std::string separated(std::string text) {
  constexpr std::ptrdiff_t kFewest = 6;
  for (const char mark : {',', ';', '|'}) {
    if (std::ranges::count(text, mark) < kFewest) continue;
    std::string cells;
    bool empty = false;
    for (const char c : text) {
      if (c == mark && empty && mark == ',') cells += '-';
      cells += c == mark ? ' ' : c;
      empty = c == mark;
    }
    text = std::move(cells);
  }
  return text;
}

// The line without colours and without what launchers put ahead of it: "[1,0]<stdout>:", " 2: ".
std::string plain_line(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && !(line[i] >= '@' && line[i] <= '~')) ++i;
      continue;
    }
    text += line[i];
  }
  for (const std::string_view mark : {"<stdout>:", "<stderr>:"}) {
    const std::size_t at = text.find(mark);
    if (at != std::string::npos && at < 64) text.erase(0, at + mark.size());
  }
  // srun -l, padded from 10 tasks on: " 2: ".
  std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  std::size_t digits = begin;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  if (digits > begin && digits < text.size() && text[digits] == ':') text.erase(0, digits + 1);
  drop_ranks(text);
  return text;
}

// Whether NCCL itself wrote into the line.
bool is_nccl_line(std::string_view line) {
  constexpr std::string_view kMarks[] = {"NCCL INFO", "NCCL WARN", "NCCL TRACE", "NCCL ABORT"};
  return std::ranges::any_of(kMarks, [&](auto mark) { return line.find(mark) != line.npos; });
}

// A label without its '#'.
std::string_view bare(std::string_view label) {
  while (!label.empty() && label.front() == '#') label.remove_prefix(1);
  return label;
}

// What the columns of a printed table mean.
enum class LogColumn { kTime, kCpuTime, kAlg, kBus, kWrong, kOther };

struct LogHead {
  bool redop = false;
  bool root = false;
  std::vector<std::vector<LogColumn>> places;  // out of place, then in place
  bool counted = false;                        // the checks are "#wrong", a number of elements
  bool milliseconds = false;                   // the head of 2018: "bytes N type op"; no unit line
  // Words ahead of the size, the nearest first, and behind what the test prints.
  std::vector<std::string> lead;
  std::vector<std::string> tail;
};

// Columns that nccl-tests itself has printed behind a time.
bool is_check(std::string_view word) {
  return word == "error" || word == "res" || word == "delta" || word == "max-delta" ||
         word.starts_with("i_");
}

// The words before `end`, the nearest first.
std::vector<std::string> words_before(const Tokens& tokens, std::size_t end) {
  std::vector<std::string> words;
  for (std::size_t i = end; i-- > 0;) {
    if (!bare(tokens[i]).empty()) words.emplace_back(bare(tokens[i]));
  }
  return words;
}

// The head of a table, or nothing.
std::optional<LogHead> head_of(const Tokens& tokens) {
  std::size_t at = 0;
  while (at < tokens.size() && bare(tokens[at]) != "size" && bare(tokens[at]) != "bytes") ++at;
  if (at + 6 > tokens.size()) return std::nullopt;
  if (tokens[at + 1] != "count" && tokens[at + 1] != "N") return std::nullopt;
  if (tokens[at + 2] != "type") return std::nullopt;
  LogHead head;
  head.lead = words_before(tokens, at);
  head.milliseconds = bare(tokens[at]) == "bytes";
  for (at += 3; at < tokens.size(); ++at) {
    const std::string_view word = bare(tokens[at]);
    if (word == "time" || word == "cputime") {
      // What stands between the two measurements is of the first one.
      for (std::size_t i = 0; i < head.tail.size(); ++i) {
        head.places.back().push_back(LogColumn::kOther);
      }
      head.tail.clear();
      head.places.push_back({word == "time" ? LogColumn::kTime : LogColumn::kCpuTime});
    } else if (head.places.empty()) {
      head.redop = head.redop || word == "redop" || word == "op";
      head.root = head.root || word == "root";
    } else if (!head.tail.empty()) {
      head.tail.emplace_back(word);
    } else if (word == "algbw") {
      head.places.back().push_back(LogColumn::kAlg);
    } else if (word == "busbw") {
      head.places.back().push_back(LogColumn::kBus);
    } else if (word == "wrong") {
      head.places.back().push_back(LogColumn::kWrong);
      head.counted = true;
    } else if (word == "timestamp") {
      break;
    } else if (is_check(word)) {
      head.places.back().push_back(LogColumn::kOther);
    } else {
      head.tail.emplace_back(word);  // algo, proto, nchannels of RCCL, or a user's own
    }
  }
  if (head.places.empty() || head.places.size() > 2) return std::nullopt;
  return head;
}

// Where the head is missing (an abridged log): by the shape of one whole row, whose words behind
// the type begin at `at`. Both measurements have four columns; a word behind the type is the
// operation, an odd number of numbers has a root.
std::optional<LogHead> head_by_row(const Tokens& tokens, std::size_t at) {
  LogHead head;
  const auto is_value = [&](std::size_t i) {
    return i < tokens.size() &&
           (amount_of(tokens[i]) || tokens[i] == "N/A" || number_of<int>(tokens[i]));
  };
  head.redop = at < tokens.size() && !is_value(at);
  if (head.redop) ++at;
  std::size_t numbers = 0;
  while (is_value(at + numbers)) ++numbers;
  if (numbers != 8 && numbers != 9) return std::nullopt;
  head.root = numbers == 9;
  const std::vector<LogColumn> place{LogColumn::kTime, LogColumn::kAlg, LogColumn::kBus,
                                     LogColumn::kWrong};
  head.places = {place, place};
  head.counted = head.root;  // both came with 2.13, or nearly
  return head;
}

constexpr int kMostLoggedRanks = 1 << 20;

// "[0x07] NVIDIA H100 80GB HBM3" behind "device", its number and its bus.
std::string name_behind(const Tokens& tokens, std::size_t at) {
  // The bus may stand apart from its bracket: "device  0 [0x07]", "device 0 [ 0x07]".
  while (at < tokens.size() && tokens[at].find(']') == std::string_view::npos) ++at;
  std::string name;
  for (++at; at < tokens.size(); ++at) {
    name += (name.empty() ? "" : " ") + std::string(tokens[at]);
  }
  return name;
}

// "Rank 3 [Group 0] [Pid 17] on host device 3 [0x07] name".
std::optional<LogDevice> device_of(const Tokens& tokens) {
  for (std::size_t i = 0; i + 4 < tokens.size(); ++i) {
    if (bare(tokens[i]) != "Rank") continue;
    const auto rank = number_of<int>(tokens[i + 1]);
    if (!rank || *rank < 0 || *rank >= kMostLoggedRanks) return std::nullopt;
    LogDevice device;
    device.rank = *rank;
    std::size_t at = i + 2;
    if (at + 1 < tokens.size() && tokens[at] == "Group") {
      device.group = number_of<int>(tokens[at + 1]).value_or(0);
      at += 2;
    }
    if (at + 1 < tokens.size() && tokens[at] == "Pid") at += 2;
    if (at + 2 >= tokens.size() || tokens[at] != "on" || tokens[at + 2] != "device") {
      return std::nullopt;
    }
    device.host = tokens[at + 1];
    device.name = name_behind(tokens, at + 3);
    return device;
  }
  return std::nullopt;
}

// "NCCL version 2.18.3+cuda12.2", or the code of the library that nccl-tests prints.
std::string version_in(const std::string& line) {
  for (const std::string_view mark : {"NCCL version ", "nccl-library="}) {
    const std::size_t at = line.find(mark);
    if (at == std::string::npos) continue;
    const Tokens words = split_words(std::string_view(line).substr(at + mark.size()));
    if (words.empty() || words[0][0] < '0' || words[0][0] > '9') continue;
    const auto code = number_of<int>(words[0]);
    return code ? version_of_code(*code) : std::string(words[0]);
  }
  return {};
}

// "# NODES: 8" and its like, above a published table.
std::optional<LogContext> comment_of(const Tokens& tokens, const std::string& line) {
  if (tokens.size() < 3 || tokens[0] != "#") return std::nullopt;
  const std::string_view key = tokens[1];
  LogContext fact;
  int number = 0;
  std::from_chars(tokens[2].data(), tokens[2].data() + tokens[2].size(), number);
  if (number < 0 || number > kMostLoggedRanks) number = 0;
  if (key == "COLLECTIVE:") {
    fact.said_test = test_name(line.substr(line.find(':')));
  } else if (key == "NODES:") {
    fact.said_nodes = number;
  } else if (key == "GPUS:") {
    fact.said_gpus = number;
  } else if (key == "NCCL:") {
    const auto version = tokens[2].substr(0, tokens[2].find_first_not_of("0123456789."));
    if (version.find('.') != std::string_view::npos) fact.said_version = version;
  } else {
    return std::nullopt;
  }
  return fact;
}

// What a line says about the run around a table (devices, program, version, comments), or nothing.
std::optional<LogContext> fact_of(const Tokens& tokens, const std::string& line) {
  const auto has = [&](std::string_view words) { return line.find(words) != std::string::npos; };
  if (has("Collective test concluded")) return std::nullopt;
  if (auto comment = comment_of(tokens, line)) return comment;
  LogContext fact;
  if (auto device = device_of(tokens)) fact.devices.push_back(std::move(*device));
  fact.nccl_version = version_in(line);
  fact.test = test_program_in(line);
  fact.begins_list = has("Using devices");
  const bool begins_run = fact.begins_list || (has("nThread") && has("nGpus"));
  const bool something =
      !fact.devices.empty() || !fact.nccl_version.empty() || !fact.test.empty() || begins_run;
  return something ? std::optional(fact) : std::nullopt;
}

// A row, as far as it has come.
struct TornRow {
  LogRow read;
  std::size_t lead = 0;  // words ahead of the row in its line
  bool in_place_only = false;
  std::vector<std::string> values;
  std::size_t wanted = 0;
};

class TextReader {
 public:
  std::vector<RawTable> read(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      ++line_;
      take(plain_line(text.substr(at, end - at)));
      at = end + 1;
    }
    drop_torn();
    close();
    end_file();
    return std::move(tables_);
  }

 private:
  void take(const std::string& line) {
    const std::string cells = separated(line);
    const Tokens tokens = split_words(cells);
    if (tokens.empty()) return;
    const std::size_t row = row_at(tokens);
    if (row < tokens.size()) {
      drop_torn();
      begin_row(tokens, row, line);
      if (is_nccl_line(line)) learn_settings(line);
      return;
    }
    if (torn_) {
      const bool noise = is_nccl_line(line);
      if (noise) learn_settings(line);
      if (append(tokens, 0, noise)) return;
    }
    if (auto head = head_of(tokens)) {
      drop_torn();
      close();
      listing_ = false;
      head_ = std::move(head);
      head_line_ = line_;
      return;
    }
    learn(tokens, line);
  }

  // Two integers and a type begin a row, wherever in the line.
  static std::size_t row_at(const Tokens& tokens) {
    for (std::size_t i = 0; i + 4 < tokens.size(); ++i) {
      if (nccl_type_size(tokens[i + 2]) == 0) continue;
      const auto size = number_of<std::int64_t>(tokens[i]);
      const auto count = number_of<std::int64_t>(tokens[i + 1]);
      if (size && count && *size >= 0 && *count >= 0) return i;
    }
    return tokens.size();
  }

  void begin_row(const Tokens& tokens, std::size_t at, const std::string& line) {
    if (!head_) {
      head_ = head_by_row(tokens, at + 3);
      if (!head_) {
        stray("a row without a head, and not of eight or nine numbers");
        return;
      }
      guessed_ = true;
      head_line_ = line_;
    }
    TornRow torn;
    LogRow& read = torn.read;
    read.line = line_;
    read.row.size = *number_of<std::int64_t>(tokens[at]);
    read.row.count = *number_of<std::int64_t>(tokens[at + 1]);
    read.row.type = tokens[at + 2];
    const bool noise = is_nccl_line(line);
    torn.lead = at;
    if (!noise) read.lead = words_before(tokens, at);
    for (const auto& place : head_->places) torn.wanted += place.size();
    at += 3;
    const Tokens rest(tokens.begin() + static_cast<std::ptrdiff_t>(at), tokens.end());
    const std::optional<Lead> lead = lead_of(rest, read.row.size);
    if (!lead) {
      stray("a row without the root that its head promises");
      return;
    }
    open();
    read.row.redop = lead->redop;
    read.root = lead->root;
    const std::string_view last = tokens[at + lead->words - 1];
    at += lead->words;
    // Tests that measure in place only leave 32 blanks.
    if (at < tokens.size() && head_->places.size() == 2) {
      const auto gap = static_cast<std::size_t>(tokens[at].data() - last.data()) - last.size();
      torn.in_place_only = gap >= 32;
      if (torn.in_place_only) torn.wanted = head_->places[1].size();
    }
    if (lead->glued) at = tokens.size();
    torn_ = std::move(torn);
    append(tokens, at, noise);
  }

  // What stands between the type and the first time.
  struct Lead {
    std::string redop;
    int root = -1;
    std::size_t words = 0;
    bool glued = false;  // NCCL's line begins in the last word
  };

  // An operation is never a number: under its head may be a blank, as may be under the root's. Then
  // the row is as long as the times alone, and size / algbw is the time without it.
  std::optional<Lead> lead_of(const Tokens& rest, Bytes size) const {
    Lead lead;
    if (head_->redop && !rest.empty() && !number_of<double>(rest[0]) && rest[0] != "N/A") {
      lead.redop = rest[0] == "-" ? std::string() : redop_of(rest[0]);
      lead.words = 1;
    }
    if (!head_->root || lead.words >= rest.size()) return lead;
    const std::string_view word = rest[lead.words];
    if (word == "-") {
      ++lead.words;
      return lead;
    }
    // "-1" may have a host name glued to it.
    const char* end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, lead.root);
    std::size_t wanted = 0;
    for (const auto& place : head_->places) wanted += place.size();
    const bool short_row = rest.size() == lead.words + wanted || error != std::errc{};
    if (short_row && first_is_time(rest, lead.words, size) &&
        !first_is_time(rest, lead.words + 1, size)) {
      lead.root = -1;
      return lead;
    }
    if (error != std::errc{}) return std::nullopt;
    ++lead.words;
    lead.glued = stop != end;
    return lead;
  }

  // Whether the words from `at` on begin with a time of that size and its algbw.
  bool first_is_time(const Tokens& rest, std::size_t at, Bytes size) const {
    const auto& place = head_->places.front();
    const auto column = std::ranges::find(place, LogColumn::kAlg);
    const auto alg = at + static_cast<std::size_t>(column - place.begin());
    if (column == place.end() || alg >= rest.size()) return false;
    const auto time = amount_of(rest[at]);
    const auto rate = amount_of(rest[alg]);
    if (!time || !rate) return false;
    const PrintedPlace printed{half_unit(rest[at]), *rate, half_unit(rest[alg])};
    PrintedPlace milli = printed;
    milli.time_half *= 1e3;
    return lawful(size, *time, printed, head_->milliseconds) ||
           lawful(size, *time * 1e3, milli, head_->milliseconds);
  }

  static std::string redop_of(std::string_view word) {
    for (const std::string_view known : {"none", "sum", "prod", "max", "min", "avg", "mulsum"}) {
      if (word.substr(0, known.size()) == known) return std::string(known);
    }
    return std::string(word);
  }

  // Adds the values from token `at` on to the torn row, up to the first word that is none. Returns
  // whether the line belonged to the row.
  bool append(const Tokens& tokens, std::size_t at, bool noise) {
    bool some = false;
    // The rest of a torn row has the same words ahead of it as its begin: "worker-0 |".
    if (at == 0 && tokens.size() > torn_->lead && !noise && !is_value(tokens[0])) {
      at = torn_->lead;
    }
    for (; at < tokens.size() && torn_->values.size() < torn_->wanted; ++at) {
      std::string_view word = tokens[at];
      if (!is_value(word)) {
        if (!noise) break;
        // A number with NCCL's host name glued to it.
        double value = 0;
        const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value,
                                                   std::chars_format::fixed);
        if (word.substr(0, 3) == "N/A") {
          torn_->values.emplace_back("N/A");
          some = true;
        } else if (error == std::errc{} && value >= 0 && at > 0 && stop != word.data()) {
          torn_->values.emplace_back(word.data(), stop);
          some = true;
        }
        break;
      }
      torn_->values.emplace_back(word);
      some = true;
    }
    if (torn_->values.size() == torn_->wanted) {
      for (; at < tokens.size() && !noise && torn_->read.tail.size() < head_->tail.size(); ++at) {
        torn_->read.tail.emplace_back(tokens[at]);
      }
      finish_row();
    }
    return some || noise;
  }

  static bool is_value(std::string_view word) {
    return word == "N/A" || word == "-" || amount_of(word) || is_bad_amount(word);
  }

  void finish_row() {
    LogRow read = std::move(torn_->read);
    std::size_t next = 0;
    bool measured = false;
    for (std::size_t p = torn_->in_place_only ? 1 : 0; p < head_->places.size(); ++p) {
      const auto& place = head_->places[p];
      // Cut off in the middle of a measurement: its last word may be half a number.
      if (next + place.size() > torn_->values.size()) break;
      for (const LogColumn column : place) take_value(column, torn_->values[next++], p == 0, read);
      measured = true;
    }
    if (measured) {
      tables_.back().rows.push_back(std::move(read));
    } else {
      note("line " + std::to_string(read.line) + ": row without its values");
    }
    torn_.reset();
  }

  // One figure of a measurement.
  void take_value(LogColumn column, const std::string& word, bool out, LogRow& read) const {
    cost::MeasuredRow& row = read.row;
    PrintedPlace& printed = read.places[out ? 0 : 1];
    const auto value = amount_of(word);
    if (column == LogColumn::kTime && value) {
      (out ? row.out_of_place : row.in_place) = *value * kMicrosecond;
      printed.time_half = half_unit(word);
      if (*value == 0 && row.size > 0) read.leave_out(out, "time 0");
    } else if (column == LogColumn::kTime && is_bad_amount(word)) {
      read.leave_out(out, "time " + word);
    } else if (column == LogColumn::kAlg && value) {
      printed.alg = *value;
      printed.alg_half = half_unit(word);
      if (out) row.out_of_place_alg = *value * kGigabytePerSecond;
    } else if (column == LogColumn::kBus && value) {
      printed.bus = *value;
      printed.bus_half = half_unit(word);
    } else if (column == LogColumn::kWrong && head_->counted) {
      (out ? row.out_of_place_wrong : row.in_place_wrong) = value;
      if (value.value_or(0) > 0 && row.size > 0) read.leave_out(out, "#wrong is " + word);
    }
  }

  // The row's rest never came: what is whole of it counts.
  void drop_torn() {
    if (!torn_) return;
    LogRow& read = torn_->read;
    note("line " + std::to_string(read.line) + ": row cut off");
    const bool whole = !torn_->in_place_only && torn_->values.size() >= head_->places[0].size();
    read.leave_out(!whole && !torn_->in_place_only, "the row is cut off");
    finish_row();
  }

  // Says of a line that looks like a row what it lacks.
  void stray(const std::string& what) {
    strays_.push_back("line " + std::to_string(line_) + ": " + what + ": not read");
  }

  // -------------------------------------------------------------------------------------------
  // Tables and what is said around them.

  void note(std::string sentence) { tables_.back().table.notes.push_back(std::move(sentence)); }

  void open() {
    if (open_) return;
    open_ = true;
    behind_.clear();
    RawTable& raw = tables_.emplace_back();
    raw.table.line = head_line_;
    raw.context = context_;
    raw.context.settings.insert(exported_.begin(), exported_.end());
    raw.lead = head_->lead;
    raw.tail = head_->tail;
    raw.sent_away = head_->milliseconds;
    raw.context_inherited = !fresh_;
    fresh_ = false;
    average_ = false;
    if (guessed_) note("the table has no head: columns taken from the shape of its rows");
    for (const auto& place : head_->places) {
      if (place.front() == LogColumn::kCpuTime) {
        note("the times are the host's (-C), not the collectives': they are left out");
        break;
      }
    }
  }

  // Ends the table, if one is open, and forgets its head.
  void close() {
    if (open_) {
      if (!average_) note("the log ends without an average: it may be cut off");
      settle_unit(tables_.back());
    }
    open_ = false;
    guessed_ = false;
    unit_ = 0;
    head_.reset();
  }

  // Times were printed in milliseconds in 2018. The unit line says so from 2019 on; before it, the
  // row itself does: size / algbw is the time.
  void settle_unit(RawTable& raw) const {
    int micro = 0;
    int milli = 0;
    for (const LogRow& read : raw.rows) {
      for (const bool out : {true, false}) {
        const auto& time = out ? read.row.out_of_place : read.row.in_place;
        const double alg = read.places[out ? 0 : 1].alg;
        if (!time || *time <= 0 || alg < 0.1) continue;
        const double ratio = static_cast<double>(read.row.size) / (alg * 1e9) / *time;
        if (ratio > 0.5 && ratio < 2) ++micro;
        if (ratio > 500 && ratio < 2000) ++milli;
      }
    }
    const bool by_head = head_ && head_->milliseconds && unit_ == 0;
    const bool milliseconds = micro + milli > 0 && unit_ == 0 ? milli > micro
                              : unit_ != 0                    ? unit_ == 2
                                                              : by_head;
    if (milliseconds) {
      for (LogRow& read : raw.rows) {
        for (PrintedPlace& printed : read.places) printed.time_half *= 1000;
        if (read.row.out_of_place) *read.row.out_of_place *= 1000;
        if (read.row.in_place) *read.row.in_place *= 1000;
      }
    } else if (milli > micro) {
      raw.table.notes.push_back("the times contradict size / algbw by a factor of 1000");
    }
  }

  // A line about the run that comes behind a table's rows belongs to the next table.
  void begin_context() {
    drop_torn();
    if (open_ || head_) close();
    if (!fresh_) context_ = LogContext{};
    fresh_ = true;
  }

  // What comes after the last table: a lone table is its run.
  void end_file() {
    if (tables_.empty()) return;
    RawTable& last = tables_.back();
    for (std::string& sentence : strays_) last.table.notes.push_back(std::move(sentence));
    for (const auto& [name, value] : behind_) {
      if (tables_.size() == 1) {
        last.context.settings.emplace(name, value);
      } else if (!last.context.settings.contains(name)) {
        last.table.notes.push_back(name + "=" + value +
                                   " comes after the last table: taken for none of them");
      }
    }
  }

  // NCCL's environment: its own lines may come amid the rows that they are of, a command and an
  // export stand ahead.
  void learn_settings(const std::string& line) {
    const StatedSettings stated = settings_in(line);
    if (stated.values.empty()) return;
    if (open_ && is_nccl_line(line)) {
      for (const auto& [name, value] : stated.values) {
        tables_.back().context.settings[name] = value;
      }
      return;
    }
    if (open_ || !head_) begin_context();
    for (const auto& [name, value] : stated.values) {
      if (!tables_.empty()) behind_[name] = value;
      (stated.of_one_run ? context_.settings : exported_)[name] = value;
    }
  }

  // The test ended with an error.
  bool is_failure(const std::string& line) const {
    const auto has = [&](const char* words) { return line.find(words) != std::string::npos; };
    return has("Test NCCL failure") || has("Test CUDA failure") || has("Test HIP failure") ||
           has("Test RCCL failure") || has("Test failure common") || has("NCCL WARN Call to") ||
           has("Test timeout");
  }

  void learn(const Tokens& tokens, const std::string& line) {
    learn_settings(line);
    if (line.find("Avg bus bandwidth") != std::string::npos) {
      average_ = true;
      return;
    }
    if (line.find("Out of bounds values") != std::string::npos) {
      if (open_ && line.find("FAILED") != std::string::npos) {
        // Leaves out the sizes that rows call wrong, if any row does.
        tables_.back().table.failed |= std::ranges::none_of(tables_.back().rows, wrong_somewhere);
        note("the test failed its own check: " + std::string(tokens[tokens.size() - 2]) +
             " values out of bounds");
      }
      return;
    }
    if (open_ && is_failure(line)) {
      if (!tables_.back().table.failed) note("line " + std::to_string(line_) + ": the test failed");
      tables_.back().table.failed = true;
      return;
    }
    if (head_ && is_row_of_unknown_type(tokens)) {
      stray("a row of type '" + std::string(tokens[2]) + "', which is not known");
      return;
    }
    if (tokens.front() == "(B)" || (tokens.size() > 2 && tokens[1] == "(B)")) {
      if (line.find("(us)") != std::string::npos) unit_ = 1;
      if (line.find("(ms)") != std::string::npos) unit_ = 2;
      return;
    }
    if (listing_ && line.find("...") != std::string::npos) context_.devices_cut = true;
    if (const auto fact = fact_of(tokens, line)) apply(*fact);
  }

  void apply(const LogContext& fact) {
    // Between the head and its rows a fact changes nothing about the head.
    if (open_ || !head_) begin_context();
    const bool first = !fact.devices.empty() && fact.devices.front().rank == 0;
    if (first && context_.devices.size() == 1 && context_.devices.front().rank == 0) {
      context_.several_worlds = true;
    }
    if (fact.begins_list || first) context_.devices.clear();
    listing_ = listing_ || fact.begins_list;
    for (const LogDevice& device : fact.devices) context_.devices.push_back(device);
    for (const auto text : {&LogContext::test, &LogContext::nccl_version, &LogContext::said_test,
                            &LogContext::said_version}) {
      if (!(fact.*text).empty()) context_.*text = fact.*text;
    }
    for (const auto count : {&LogContext::said_nodes, &LogContext::said_gpus}) {
      if (fact.*count > 0) context_.*count = fact.*count;
    }
  }

  // "1048576 262144 fp6 ..." with figures behind it.
  static bool is_row_of_unknown_type(const Tokens& tokens) {
    constexpr std::size_t kFewest = 7;
    if (tokens.size() < kFewest || number_of<double>(tokens[2])) return false;
    return number_of<std::int64_t>(tokens[0]) && number_of<std::int64_t>(tokens[1]) &&
           amount_of(tokens[tokens.size() - 1]) && amount_of(tokens[tokens.size() - 2]);
  }

  std::vector<RawTable> tables_;
  std::map<std::string, std::string> exported_;  // NCCL's environment, of all runs from here on
  std::map<std::string, std::string> behind_;    // stated since the last table began
  std::vector<std::string> strays_;              // lines that look like rows and are not read
  LogContext context_;
  bool fresh_ = true;  // something was said since the last table began
  std::optional<LogHead> head_;
  bool guessed_ = false;  // the head is taken from a row
  int head_line_ = 0;
  bool open_ = false;     // tables_.back() takes rows
  bool average_ = false;  // its end was seen
  bool listing_ = false;
  int unit_ = 0;  // of the times: 0 not said, 1 microseconds, 2 milliseconds
  std::optional<TornRow> torn_;
  int line_ = 0;
};

}  // namespace

std::vector<RawTable> nccl_text_tables(std::string_view text) { return TextReader().read(text); }

}  // namespace syncline::calibrate
