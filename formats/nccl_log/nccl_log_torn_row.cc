#include "formats/nccl_log/nccl_log_torn_row.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

namespace syncline::calibrate {
namespace {

bool is_value(std::string_view word) {
  return word == "N/A" || word == "-" || amount_of(word) || is_bad_amount(word);
}

std::string redop_of(std::string_view word) {
  for (const std::string_view known : {"none", "sum", "prod", "max", "min", "avg", "mulsum"}) {
    if (word.substr(0, known.size()) == known) return std::string(known);
  }
  return std::string(word);
}

std::size_t columns_of(const LogHead& head) {
  std::size_t count = 0;
  for (const auto& place : head.places) count += place.size();
  return count;
}

// Returns true if the words from `at` begin with a time of that size and its algbw.
bool first_is_time(const LogHead& head, const Tokens& rest, std::size_t at, Bytes size) {
  const auto& place = head.places.front();
  const auto column = std::ranges::find(place, LogColumn::kAlg);
  const auto alg = at + static_cast<std::size_t>(column - place.begin());
  if (column == place.end() || alg >= rest.size()) return false;
  const auto time = amount_of(rest[at]);
  const auto rate = amount_of(rest[alg]);
  if (!time || !rate) return false;
  const PrintedPlace printed{half_unit(rest[at]), *rate, half_unit(rest[alg])};
  PrintedPlace milli = printed;
  milli.time_half *= 1e3;
  return lawful(size, *time, printed, head.milliseconds) ||
         lawful(size, *time * 1e3, milli, head.milliseconds);
}

// Words between the type and the first time.
struct RowLead {
  std::string redop;
  int root = -1;
  std::size_t words = 0;
  bool glued = false;  // NCCL's line begins in the last word
};

// Reads the operation and the root; nullopt: the root is missing. An operation is never a number.
// Both may be blank: then the row has only times, and size / algbw is the time without a root.
std::optional<RowLead> row_lead_of(const LogHead& head, const Tokens& rest, Bytes size) {
  RowLead lead;
  if (head.redop && !rest.empty() && !number_of<double>(rest[0]) && rest[0] != "N/A") {
    lead.redop = rest[0] == "-" ? std::string() : redop_of(rest[0]);
    lead.words = 1;
  }
  if (!head.root || lead.words >= rest.size()) return lead;
  const std::string_view word = rest[lead.words];
  if (word == "-") {
    ++lead.words;
    return lead;
  }
  // "-1" may have a host name glued to it.
  const char* end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, lead.root);
  const bool short_row = rest.size() == lead.words + columns_of(head) || error != std::errc{};
  if (short_row && first_is_time(head, rest, lead.words, size) &&
      !first_is_time(head, rest, lead.words + 1, size)) {
    lead.root = -1;
    return lead;
  }
  if (error != std::errc{}) return std::nullopt;
  ++lead.words;
  lead.glued = stop != end;
  return lead;
}

}  // namespace

std::size_t find_row(const Tokens& tokens) {
  for (std::size_t i = 0; i + 4 < tokens.size(); ++i) {
    if (nccl_type_size(tokens[i + 2]) == 0) continue;
    const auto size = number_of<std::int64_t>(tokens[i]);
    const auto count = number_of<std::int64_t>(tokens[i + 1]);
    if (size && count && *size >= 0 && *count >= 0) return i;
  }
  return tokens.size();
}

bool is_row_of_unknown_type(const Tokens& tokens) {
  constexpr std::size_t kFewest = 7;
  if (tokens.size() < kFewest || number_of<double>(tokens[2])) return false;
  return number_of<std::int64_t>(tokens[0]) && number_of<std::int64_t>(tokens[1]) &&
         amount_of(tokens[tokens.size() - 1]) && amount_of(tokens[tokens.size() - 2]);
}

std::optional<TornRow> TornRow::begin(const LogHead& head, const Tokens& tokens, std::size_t at,
                                      int line, bool noise) {
  TornRow torn(head);
  torn.row_.line = line;
  torn.row_.row.size = *number_of<std::int64_t>(tokens[at]);
  torn.row_.row.count = *number_of<std::int64_t>(tokens[at + 1]);
  torn.row_.row.type = tokens[at + 2];
  torn.lead_ = at;
  if (!noise) torn.row_.lead = preceding_words(tokens, at);
  torn.wanted_ = columns_of(head);
  at += 3;
  const Tokens rest(tokens.begin() + static_cast<std::ptrdiff_t>(at), tokens.end());
  const std::optional<RowLead> lead = row_lead_of(head, rest, torn.row_.row.size);
  if (!lead) return std::nullopt;
  torn.row_.row.redop = lead->redop;
  torn.row_.root = lead->root;
  const std::string_view last = tokens[at + lead->words - 1];
  at += lead->words;
  // Tests that measure only in place leave 32 blanks.
  if (at < tokens.size() && head.places.size() == 2) {
    const auto gap = static_cast<std::size_t>(tokens[at].data() - last.data()) - last.size();
    torn.in_place_only_ = gap >= 32;
    if (torn.in_place_only_) torn.wanted_ = head.places[1].size();
  }
  if (lead->glued) at = tokens.size();
  torn.append_from(tokens, at, noise);
  return torn;
}

bool TornRow::append(const Tokens& tokens, bool noise) {
  // The rest of a torn row repeats the words before its beginning: "worker-0 |".
  const bool led = tokens.size() > lead_ && !noise && !is_value(tokens[0]);
  return append_from(tokens, led ? lead_ : 0, noise);
}

// Adds the values from token `at`, up to the first word that is not a value.
bool TornRow::append_from(const Tokens& tokens, std::size_t at, bool noise) {
  bool some = false;
  for (; at < tokens.size() && values_.size() < wanted_; ++at) {
    if (!is_value(tokens[at])) {
      if (noise) some = append_glued(tokens[at], at == 0) || some;
      break;
    }
    values_.emplace_back(tokens[at]);
    some = true;
  }
  if (complete()) {
    for (; at < tokens.size() && !noise && row_.tail.size() < head_->tail.size(); ++at) {
      row_.tail.emplace_back(tokens[at]);
    }
  }
  return some || noise;
}

// Adds a number with NCCL's host name glued to it. Returns false if there is no number.
bool TornRow::append_glued(std::string_view word, bool first) {
  double value = 0;
  const auto [stop, error] =
      std::from_chars(word.data(), word.data() + word.size(), value, std::chars_format::fixed);
  if (word.substr(0, 3) == "N/A") {
    values_.emplace_back("N/A");
    return true;
  }
  if (error != std::errc{} || value < 0 || first || stop == word.data()) return false;
  values_.emplace_back(word.data(), stop);
  return true;
}

void TornRow::cut_off() {
  const bool whole = !in_place_only_ && values_.size() >= head_->places[0].size();
  row_.leave_out(!whole && !in_place_only_, "the row is cut off");
}

std::optional<LogRow> TornRow::finish() const {
  LogRow row = row_;
  std::size_t next = 0;
  bool measured = false;
  for (std::size_t p = in_place_only_ ? 1 : 0; p < head_->places.size(); ++p) {
    const auto& place = head_->places[p];
    // The row ends inside a measurement: its last word may be half a number.
    if (next + place.size() > values_.size()) break;
    for (const LogColumn column : place) put(column, values_[next++], p == 0, row);
    measured = true;
  }
  return measured ? std::optional(std::move(row)) : std::nullopt;
}

// Puts one figure of a measurement into the row.
void TornRow::put(LogColumn column, const std::string& word, bool out, LogRow& read) const {
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

}  // namespace syncline::calibrate
