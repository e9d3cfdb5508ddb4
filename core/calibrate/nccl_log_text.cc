// The text that nccl-tests prints. One pass over the lines; each is a row, a table's head, a fact
// about the run, or nothing. A row can be torn by NCCL's own lines ("... sum  -1n013:161:161 [0]
// NCCL INFO ..."): it then waits for the rest of its values.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>

#include "core/calibrate/nccl_log_parts.h"

namespace syncline::calibrate {
namespace {

// A row, as far as it has come.
struct TornRow {
  cost::MeasuredRow row;
  int root = -1;
  int line = 0;
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
    return std::move(tables_);
  }

 private:
  void take(const std::string& line) {
    const Tokens tokens = split_words(line);
    if (tokens.empty()) return;
    const std::size_t row = row_at(tokens);
    if (row < tokens.size()) {
      drop_torn();
      begin_row(tokens, row, line);
      return;
    }
    if (torn_) {
      if (append(tokens, 0, is_nccl_line(line))) return;
    }
    if (auto head = head_of(tokens)) {
      drop_torn();
      close();
      listing_ = false;
      head_ = std::make_unique<LogHead>(std::move(*head));
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
      auto guess = head_by_row(tokens, at + 3);
      if (!guess) return;
      head_ = std::make_unique<LogHead>(std::move(*guess));
      guessed_ = true;
      head_line_ = line_;
    }
    open();
    TornRow torn;
    torn.line = line_;
    torn.row.size = *number_of<std::int64_t>(tokens[at]);
    torn.row.count = *number_of<std::int64_t>(tokens[at + 1]);
    torn.row.type = tokens[at + 2];
    torn.wanted = head_->values();
    at += 3;
    const bool noise = is_nccl_line(line);
    std::size_t lead_end = 0;
    if (head_->redop && at < tokens.size()) {
      torn.row.redop = redop_of(tokens[at]);
      lead_end = static_cast<std::size_t>(tokens[at].data() - line.data()) + tokens[at].size();
      ++at;
    }
    if (head_->root && at < tokens.size()) {
      // "-1" may have a host name glued to it.
      int root = -1;
      const auto [stop, error] =
          std::from_chars(tokens[at].data(), tokens[at].data() + tokens[at].size(), root);
      if (error != std::errc{}) return;
      torn.root = root;
      lead_end = static_cast<std::size_t>(tokens[at].data() - line.data()) + tokens[at].size();
      const bool glued = stop != tokens[at].data() + tokens[at].size();
      ++at;
      if (glued) at = tokens.size();
    }
    // Tests that measure in place only leave 32 blanks.
    if (at < tokens.size() && head_->places.size() == 2 && lead_end > 0) {
      const auto begin = static_cast<std::size_t>(tokens[at].data() - line.data());
      if (begin >= lead_end + 32) {
        torn.in_place_only = true;
        torn.wanted = head_->places[1].size();
      }
    }
    torn_ = std::move(torn);
    append(tokens, at, noise);
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
    for (; at < tokens.size() && torn_->values.size() < torn_->wanted; ++at) {
      std::string_view word = tokens[at];
      if (word != "N/A" && !amount_of(word) && !is_bad_amount(word)) {
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
    if (torn_->values.size() == torn_->wanted) finish_row();
    return some || noise;
  }

  void finish_row() {
    cost::MeasuredRow row = torn_->row;
    std::size_t next = 0;
    bool measured = false;
    for (std::size_t p = torn_->in_place_only ? 1 : 0; p < head_->places.size(); ++p) {
      const auto& place = head_->places[p];
      // Cut off in the middle of a measurement: its last word may be half a number.
      if (next + place.size() > torn_->values.size()) break;
      const bool out = p == 0;
      double alg = 0;
      double bus = -1;
      double half = 0;
      for (const LogColumn column : place) {
        const std::string& word = torn_->values[next++];
        const auto value = amount_of(word);
        if (column == LogColumn::kTime && value) {
          (out ? row.out_of_place : row.in_place) = *value * kMicrosecond;
          if (*value == 0 && row.size > 0) leave_out(out, "time 0");
        } else if (column == LogColumn::kTime && is_bad_amount(word)) {
          leave_out(out, "time " + word);
        } else if (column == LogColumn::kAlg && value) {
          alg = *value;
          half = half_unit(word);
        } else if (column == LogColumn::kBus && value) {
          bus = *value;
          half = std::max(half, half_unit(word));
        } else if (column == LogColumn::kWrong && head_->counted) {
          (out ? row.out_of_place_wrong : row.in_place_wrong) = value;
          if (value.value_or(0) > 0 && row.size > 0) leave_out(out, "#wrong is " + word);
        }
      }
      (out ? row.out_of_place_alg : row.in_place_alg) = alg * kGigabytePerSecond;
      (out ? row.out_of_place_bus : row.in_place_bus) = std::max(bus, 0.0) * kGigabytePerSecond;
      tables_.back().narrow(alg, bus, half);
      measured = true;
    }
    if (measured) {
      tables_.back().root = torn_->root;
      tables_.back().table.rows.push_back(std::move(row));
    } else {
      note("line " + std::to_string(torn_->line) + ": row without its values");
    }
    torn_.reset();
  }

  void leave_out(bool out_of_place, const std::string& why) {
    tables_.back().leave_out(torn_->line, torn_->row.size, out_of_place, why);
  }

  // The row's rest never came: what is whole of it counts.
  void drop_torn() {
    if (!torn_) return;
    note("line " + std::to_string(torn_->line) + ": row cut off");
    const bool whole = !torn_->in_place_only && torn_->values.size() >= head_->places[0].size();
    leave_out(!whole && !torn_->in_place_only, "the row is cut off");
    finish_row();
  }

  // -------------------------------------------------------------------------------------------
  // Tables and what is said around them.

  void note(std::string sentence) { tables_.back().table.notes.push_back(std::move(sentence)); }

  void open() {
    if (open_) return;
    open_ = true;
    RawTable& raw = tables_.emplace_back();
    raw.table.line = head_line_;
    raw.context = context_;
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
    for (const cost::MeasuredRow& row : raw.table.rows) {
      if (!row.out_of_place || *row.out_of_place <= 0) continue;
      if (row.out_of_place_alg < 0.1 * kGigabytePerSecond) continue;
      const double ratio = static_cast<double>(row.size) / row.out_of_place_alg / *row.out_of_place;
      if (ratio > 0.5 && ratio < 2) ++micro;
      if (ratio > 500 && ratio < 2000) ++milli;
    }
    const bool by_head = head_ && head_->milliseconds && unit_ == 0;
    const bool milliseconds = micro + milli > 0 && unit_ == 0 ? milli > micro
                              : unit_ != 0                    ? unit_ == 2
                                                              : by_head;
    if (milliseconds) {
      for (cost::MeasuredRow& row : raw.table.rows) {
        if (row.out_of_place) *row.out_of_place *= 1000;
        if (row.in_place) *row.in_place *= 1000;
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

  void learn(const Tokens& tokens, const std::string& line) {
    if (line.find("Avg bus bandwidth") != std::string::npos) {
      average_ = true;
      return;
    }
    if (line.find("Out of bounds values") != std::string::npos) {
      if (open_ && line.find("FAILED") != std::string::npos) {
        note("the test failed its own check: " + std::string(tokens[tokens.size() - 2]) +
             " values out of bounds");
      }
      return;
    }
    if (open_ && (line.find("Test NCCL failure") != std::string::npos ||
                  line.find("Test CUDA failure") != std::string::npos)) {
      note("line " + std::to_string(line_) + ": the test failed");
      return;
    }
    if (tokens.front() == "(B)" || (tokens.size() > 2 && tokens[1] == "(B)")) {
      if (line.find("(us)") != std::string::npos) unit_ = 1;
      if (line.find("(ms)") != std::string::npos) unit_ = 2;
      return;
    }
    if (listing_ && line.find("...") != std::string::npos) context_.devices_cut = true;
    if (auto fact = fact_of(tokens, line)) apply(std::move(*fact));
  }

  void apply(LogFact fact) {
    // Between the head and its rows a fact changes nothing about the head.
    if (open_ || !head_) begin_context();
    if (fact.begins_list || (fact.device && fact.device->rank == 0)) context_.devices.clear();
    listing_ = listing_ || fact.begins_list;
    if (fact.device) context_.devices.push_back(std::move(*fact.device));
    if (!fact.program.empty()) context_.test = fact.program;
    if (!fact.version.empty()) context_.nccl_version = fact.version;
    if (!fact.said_test.empty()) context_.said_test = fact.said_test;
    if (fact.said_nodes > 0) context_.said_nodes = fact.said_nodes;
    if (fact.said_gpus > 0) context_.said_gpus = fact.said_gpus;
    if (!fact.said_version.empty()) context_.said_version = fact.said_version;
  }

  std::vector<RawTable> tables_;
  LogContext context_;
  bool fresh_ = true;  // something was said since the last table began
  std::unique_ptr<LogHead> head_;
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
