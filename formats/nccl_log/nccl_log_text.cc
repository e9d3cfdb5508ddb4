// Reads the text that nccl-tests prints, in one pass over the lines; each is a row, a table's head,
// a fact about the run, or ignored.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "formats/nccl_log/nccl_log_facts.h"
#include "formats/nccl_log/nccl_log_head.h"
#include "formats/nccl_log/nccl_log_parts.h"
#include "formats/nccl_log/nccl_log_torn_row.h"
#include "formats/nccl_log/nccl_log_words.h"

namespace syncline::calibrate {
namespace {

// Units of times by a table's line of units.
enum class TimeUnit { kUnsaid, kMicroseconds, kMilliseconds };

// Converts times that were printed in milliseconds, as in 2018, to microseconds. Since 2019 a line
// names the unit; before, a row shows it: size / algbw is the time.
void settle_unit(RawTable& raw, TimeUnit unit, bool milliseconds_by_head) {
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
  bool milliseconds = unit == TimeUnit::kMilliseconds;
  if (unit == TimeUnit::kUnsaid) {
    milliseconds = micro + milli > 0 ? milli > micro : milliseconds_by_head;
  }
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

// Returns true if the line shows that the test ended with an error.
bool is_failure(std::string_view line) {
  constexpr std::string_view kWords[] = {
      "Test NCCL failure",   "Test CUDA failure", "Test HIP failure", "Test RCCL failure",
      "Test failure common", "NCCL WARN Call to", "Test timeout"};
  return std::ranges::any_of(kWords, [&](auto words) { return line.find(words) != line.npos; });
}

// Stores the tables, the last one perhaps open for rows, and the head of its rows.
class TextTables {
 public:
  const std::optional<LogHead>& head() const { return head_; }
  bool is_open() const { return open_; }
  bool begun() const { return open_ || head_; }
  RawTable& last() { return tables_.back(); }
  void note(std::string sentence) { last().table.notes.push_back(std::move(sentence)); }
  std::vector<RawTable> take() { return std::move(tables_); }

  // Takes a head. `guessed`: it is taken from a row.
  void set_head(LogHead head, int line, bool guessed) {
    head_ = std::move(head);
    head_line_ = line;
    guessed_ = guessed;
  }
  void set_unit(TimeUnit unit) { unit_ = unit; }
  void take_average() { average_ = true; }

  // Opens a table below the head, if none is open.
  void open(RunFacts& facts) {
    if (open_) return;
    open_ = true;
    average_ = false;
    RawTable& raw = tables_.emplace_back();
    raw.table.line = head_line_;
    raw.lead = head_->lead;
    raw.tail = head_->tail;
    raw.sent_away = head_->milliseconds;
    raw.busbw_alone = !head_->counted;
    facts.begin_table(raw);
    if (guessed_) note("the table has no head: columns taken from the shape of its rows");
    const auto is_host_time = [](const auto& place) {
      return place.front() == LogColumn::kCpuTime;
    };
    if (std::ranges::any_of(head_->places, is_host_time)) {
      note("the times are the host's (-C), not the collectives': they are left out");
    }
  }

  // Ends the table, if one is open, and forgets its head.
  void close() {
    if (open_) {
      if (!average_) note("the log ends without an average: it may be cut off");
      settle_unit(last(), unit_, head_->milliseconds);
    }
    open_ = false;
    guessed_ = false;
    unit_ = TimeUnit::kUnsaid;
    head_.reset();
  }

  void end_log(const RunFacts& facts, std::vector<std::string> strays) {
    close();
    if (tables_.empty()) return;
    for (std::string& sentence : strays) note(std::move(sentence));
    facts.end_log(tables_);
  }

 private:
  std::vector<RawTable> tables_;
  std::optional<LogHead> head_;
  bool guessed_ = false;
  int head_line_ = 0;
  bool open_ = false;     // the last table takes rows
  bool average_ = false;  // its end was seen
  TimeUnit unit_ = TimeUnit::kUnsaid;
};

// Stores the place in the log: the current line, and the row that waits for its other values.
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
    tables_.end_log(facts_, std::move(strays_));
    return tables_.take();
  }

 private:
  void take(const std::string& line) {
    const std::string cells = separate_cells(line);
    const Tokens tokens = split_words(cells);
    if (tokens.empty()) return;
    const bool noise = is_nccl_line(line);
    const std::size_t row = find_row(tokens);
    if (row < tokens.size()) {
      drop_torn();
      begin_row(tokens, row, noise);
      if (noise) learn_settings(line);
      return;
    }
    if (torn_) {
      if (noise) learn_settings(line);
      if (append(tokens, noise)) return;
    }
    if (auto head = head_of(tokens)) {
      drop_torn();
      tables_.close();
      facts_.end_list();
      tables_.set_head(std::move(*head), line_, false);
      return;
    }
    learn(tokens, line);
  }

  // Rows ---------------------------------------------------------------------------------------

  void begin_row(const Tokens& tokens, std::size_t at, bool noise) {
    if (!tables_.head()) {
      auto head = head_by_row(tokens, at + 3);
      if (!head) return stray("a row without a head, and not of eight or nine numbers");
      tables_.set_head(std::move(*head), line_, true);
    }
    torn_ = TornRow::begin(*tables_.head(), tokens, at, line_, noise);
    if (!torn_) return stray("a row without the root that its head promises");
    tables_.open(facts_);
    if (torn_->complete()) finish_row();
  }

  bool append(const Tokens& tokens, bool noise) {
    const bool its_own = torn_->append(tokens, noise);
    if (torn_->complete()) finish_row();
    return its_own;
  }

  void finish_row() {
    if (auto row = torn_->finish()) {
      tables_.last().rows.push_back(std::move(*row));
    } else {
      tables_.note("line " + std::to_string(torn_->line()) + ": row without its values");
    }
    torn_.reset();
  }

  void drop_torn() {
    if (!torn_) return;
    tables_.note("line " + std::to_string(torn_->line()) + ": row cut off");
    torn_->cut_off();
    finish_row();
  }

  // Notes the error in a line that looks like a row.
  void stray(const std::string& what) {
    strays_.push_back("line " + std::to_string(line_) + ": " + what + ": not read");
  }

  // Lines around rows --------------------------------------------------------------------------

  // Begins another run if a line about a run follows a table's rows.
  void begin_run() {
    if (!tables_.is_open() && tables_.head()) return;
    drop_torn();
    if (tables_.begun()) tables_.close();
    facts_.begin_run();
  }

  // Takes NCCL's environment: its own lines may be among the rows of their run, a command and an
  // export come before.
  void learn_settings(const std::string& line) {
    const StatedSettings stated = find_settings(line);
    if (stated.values.empty()) return;
    if (tables_.is_open() && is_nccl_line(line)) {
      auto& settings = tables_.last().context.settings;
      for (const auto& [name, value] : stated.values) settings[name] = value;
      return;
    }
    begin_run();
    facts_.take_settings(stated);
  }

  void learn(const Tokens& tokens, const std::string& line) {
    const auto has = [&](const char* words) { return line.find(words) != std::string::npos; };
    learn_settings(line);
    if (has("Avg bus bandwidth")) return tables_.take_average();
    if (has("Out of bounds values")) {
      if (tables_.is_open() && has("FAILED")) fail_check(tokens);
      return;
    }
    if (tables_.is_open() && is_failure(line)) {
      if (!tables_.last().table.failed) {
        tables_.note("line " + std::to_string(line_) + ": the test failed");
      }
      tables_.last().table.failed = true;
      return;
    }
    if (tables_.head() && is_row_of_unknown_type(tokens)) {
      return stray("a row of type '" + std::string(tokens[2]) + "', which is not known");
    }
    if (tokens.front() == "(B)" || (tokens.size() > 2 && tokens[1] == "(B)")) {
      if (has("(us)")) tables_.set_unit(TimeUnit::kMicroseconds);
      if (has("(ms)")) tables_.set_unit(TimeUnit::kMilliseconds);
      return;
    }
    if (has("...")) facts_.take_cut();
    if (const auto fact = fact_of(tokens, line)) {
      // A fact between the head and its rows does not change the head.
      begin_run();
      facts_.take(*fact);
    }
  }

  // Removes the sizes of rows that failed the check, if there are any.
  void fail_check(const Tokens& tokens) {
    RawTable& raw = tables_.last();
    raw.table.failed |= std::ranges::none_of(raw.rows, wrong_somewhere);
    tables_.note("the test failed its own check: " + std::string(tokens[tokens.size() - 2]) +
                 " values out of bounds");
  }

  TextTables tables_;
  RunFacts facts_;
  std::vector<std::string> strays_;  // sentences on ignored lines that look like rows
  std::optional<TornRow> torn_;
  int line_ = 0;
};

}  // namespace

std::vector<RawTable> nccl_text_tables(std::string_view text) { return TextReader().read(text); }

std::string failure_in(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = plain_line(text.substr(at, end - at));
    if (is_failure(line)) return line;
    at = end + 1;
  }
  return {};
}

}  // namespace syncline::calibrate
